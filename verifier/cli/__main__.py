"""`python -m verifier.cli` is `verify`."""

import sys

from verifier.cli import main

sys.exit(main())
