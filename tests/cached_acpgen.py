"""`python -m tests.cached_acpgen` is `acpgen` with the cache of the tests: of a build, types take most of the time."""

from acpgen.cli import main
from tests import package_cache

package_cache.speed_up_builds()
main()
