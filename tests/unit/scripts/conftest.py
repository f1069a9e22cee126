"""The scripts are programs, not a package: they are imported from their folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
