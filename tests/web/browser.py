"""A real browser for the tests: Debian's Chromium, driven by Selenium."""

import json
import os
import shutil
import threading
import time
from contextlib import contextmanager

import pytest

WAIT = float(os.environ.get("BITTERN_BROWSER_WAIT", "180"))  # seconds; a busy machine is slow
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
    # a mouse, as people at a desk have
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,"
    "primaryPointerType=4,availablePointerTypes=4",
)


def require_browser():
    """Skip without Selenium, Chromium and its driver; ``scripts/browser`` installs the last two."""
    pytest.importorskip("selenium", reason="needs selenium; pip install -e '.[dev]'")
    for name in ("chromium", "chromedriver"):
        if shutil.which(name) is None:
            pytest.skip(f"needs {name}; scripts/browser installs it where apt-get works")


def start_browser(profile):
    """A browser with a new profile."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_page_load_timeout(WAIT)
    return driver


@contextmanager
def served(app):
    """The address of an application, served by a thread."""
    import uvicorn

    from bittern.web.local_server import bind

    listening = bind("127.0.0.1", 0)
    config = uvicorn.Config(app, log_level="error", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    end = time.monotonic() + WAIT
    while not server.started and thread.is_alive() and time.monotonic() < end:
        time.sleep(0.01)  # until then, a browser would be refused
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(WAIT)
        listening.close()


class Page:
    """What a person does with a page: look, click, type, drag, go back."""

    def __init__(self, driver, address):
        self.driver, self.address = driver, address

    def open(self, path):
        """Open an address, and wait until it is drawn."""
        self.driver.get(self.address + path)
        self.settled()

    def settled(self):
        """Wait until the view has drawn what the address asks."""
        done = (
            "const main = document.querySelector('main');"
            "return main.children.length > 2 && !main.hasAttribute('aria-busy')"
        )
        self.until(lambda: self.run(done), "the page to settle")

    def until(self, test, what):
        """Wait for something; its value."""
        from selenium.common.exceptions import StaleElementReferenceException

        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            try:
                found = test()
            except StaleElementReferenceException:  # it was drawn again meanwhile
                found = None
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"waited in vain for {what} at {self.driver.current_url}")

    def run(self, script, *values):
        """Run JavaScript."""
        return self.driver.execute_script(script, *values)

    def all(self, selector):
        """The elements that are there now."""
        return self.driver.find_elements("css selector", selector)

    def one(self, selector, text=""):
        """The first element that has this text, as soon as it is there."""
        return self.until(
            lambda: next((e for e in self.all(selector) if text in e.text), None),
            f"{selector} {text!r}",
        )

    def click(self, selector, text=""):
        """Click on the first element that has this text."""
        from selenium.common.exceptions import StaleElementReferenceException

        def press():
            element = self.one(selector, text)
            self.run("arguments[0].scrollIntoView({block: 'center'})", element)
            try:
                element.click()
            except StaleElementReferenceException:
                return False
            return True

        self.until(press, f"a click on {selector}")

    def at(self, part):
        """Wait until the address has this part, and the view is drawn."""
        self.until(lambda: part in self.driver.current_url, part)
        self.settled()

    def back(self, part):
        """Press the back button."""
        self.driver.back()
        self.at(part)

    def complaints(self):
        """Errors and warnings in the console since the last time."""
        return [one for one in self.driver.get_log("browser") if one["level"] != "INFO"]

    def requests(self):
        """Addresses of all requests since the last time."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def nameless(self):
        """Controls and images that a screen reader has no name for."""
        tree = self.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        wanted = {"button", "link", "textbox", "searchbox", "spinbutton", "slider", "combobox"}
        wanted |= {"radio", "checkbox", "region", "dialog", "img", "navigation", "main"}
        bad = []
        for node in tree:
            role = node.get("role", {}).get("value")
            name = node.get("name", {}).get("value", "").strip()
            if role in wanted and not name and not node.get("ignored"):
                bad.append(role)
        return bad
