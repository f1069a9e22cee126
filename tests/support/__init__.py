"""What tests share: stand-ins for S3, models of protocols, values, programs to be killed."""

from pathlib import Path

SUPPORT = Path(__file__).parent
"""Where programs lie that tests start as processes of their own."""
