"""`python -m verifier` is `verify`."""

import sys

from verifier.cli import main

sys.exit(main())
