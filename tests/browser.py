"""A real browser, where there is one: Chromium without a window, driven as a person would."""

import shutil

import pytest


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium that keeps a log of its console and of every request."""
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("Chromium and its driver are not installed (Debian: apt-get install chromium chromium-driver)")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    chrome.set_window_size(1200, 1000)
    yield chrome
    chrome.quit()


@pytest.fixture
def requests(browser):
    """The addresses that the browser has asked for since it was last asked."""
    import json

    def found() -> list[str]:
        messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
        sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        return [url for url in sent if not url.startswith(("data:", "chrome"))]

    found()
    browser.get_log("browser")
    return found
