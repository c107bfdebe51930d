"""Where the browser is that opens the pages, and what is said where there is none."""

from __future__ import annotations

import shutil

NO_BROWSER = "PAGES WERE NOT OPENED IN A BROWSER: no Chromium here; install the package `chromium`"


def chromium() -> str | None:
    """The program, as distributions name it; ``None`` where it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")
