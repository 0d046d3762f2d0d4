"""What users name: the files of a build, the revisions of a comparison."""
