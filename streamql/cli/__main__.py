"""`python -m streamql.cli`."""

import sys

from streamql.cli.main import main

sys.exit(main())
