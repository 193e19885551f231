"""`python -m streamql` is the `streamql` command."""

from __future__ import annotations

import sys

from streamql.cli.main import main

sys.exit(main())
