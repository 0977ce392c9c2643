"""Draw docs/images/explorer.png: the search view of the demo's own collection, in Chromium."""

import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "web"))

from browser import Page, served, start_browser  # noqa: E402

from bittern.cli.demo import make_collection  # noqa: E402
from bittern.cli.explore import opened  # noqa: E402

PATH = "/search?text=blue"
SIZE = {"width": 1280, "height": 860, "deviceScaleFactor": 1, "mobile": False}


def main() -> None:
    """Make the collection in a temporary folder, open it, and save what is seen."""
    with tempfile.TemporaryDirectory() as folder:
        made = make_collection(Path(folder))
        with opened(str(made), hosts=("127.0.0.1",)) as app, served(app) as address:
            driver = start_browser(Path(folder, "profile"))
            try:
                driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SIZE)
                page = Page(driver, address)
                page.open(PATH)
                seen = "return [...document.images].every((one) => one.complete)"
                page.until(lambda: page.run(seen), "the images")
                time.sleep(1)
                driver.save_screenshot(str(HERE / "explorer.png"))
            finally:
                driver.quit()


if __name__ == "__main__":
    main()
