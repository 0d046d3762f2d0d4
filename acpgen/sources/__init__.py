"""The files of a build, and the two revisions of a comparison."""
