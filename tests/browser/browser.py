# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A page in headless Chromium, driven over a pipe by the Chrome DevTools Protocol."""
import base64
import json
import os
import select
import subprocess
import tempfile

VIRTUAL_KEYS = {"Tab": 9, "Enter": 13, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


class Browser:
    """One page. `complaints` is what its console, its network and its scripts said that they should not."""

    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.write = os.pipe()
        self.read, from_browser = os.pipe()

        def place_pipes():  # the numbers that --remote-debugging-pipe expects; high numbers first, so that none is overwritten
            a, b = os.dup(to_browser), os.dup(from_browser)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
             "--user-data-dir=" + self.folder.name, "--no-first-run", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=place_pipes)
        os.close(to_browser)
        os.close(from_browser)
        self.rest, self.number, self.session, self.events, self.complaints = b"", 0, None, [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session = None
        try:
            self.call("Browser.close")
            self.process.wait(timeout=10)
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.write)
        os.close(self.read)
        self.folder.cleanup()

    def next_message(self):
        while b"\0" not in self.rest:
            if not select.select([self.read], [], [], 30)[0]:
                raise RuntimeError("the browser does not answer")
            more = os.read(self.read, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def note(self, message):
        method, p = message.get("method"), message.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.complaints.append("console.%s: %s" % (p["type"], [a.get("value", a.get("description")) for a in p["args"]]))
        elif method == "Runtime.exceptionThrown":
            d = p["exceptionDetails"]
            self.complaints.append("exception: %s %s" % (d["text"], d.get("exception", {}).get("description", "")))
        elif method == "Log.entryAdded":
            self.complaints.append("log: %s %s" % (p["entry"]["level"], p["entry"]["text"]))
        elif method == "Network.requestWillBeSent" and not p["request"]["url"].startswith(("file:", "data:", "about:", "blob:")):
            self.complaints.append("asks the network for " + p["request"]["url"])
        self.events.append(method)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next_message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]))
                return answer["result"]
            self.note(answer)

    def open(self, path):
        for url in ("about:blank", "file://" + os.path.abspath(path)):  # if only #view changes, nothing is loaded
            self.events.clear()
            self.call("Page.navigate", url=url)
            while "Page.loadEventFired" not in self.events:
                self.note(self.next_message())
        self.settle()

    def settle(self):
        """Until what was asked for is drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 60))))")

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError("%s\n%s" % (script, answer["exceptionDetails"].get("exception", {}).get("description")))
        return answer["result"].get("value")

    def press(self, key):
        code = VIRTUAL_KEYS.get(key, ord(key[0].upper()))
        text = {"Enter": "\r", "Tab": ""}.get(key, key if len(key) == 1 else "")
        about = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **about, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)
        self.settle()

    def size(self, width, height, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.settle()

    def scheme(self, dark):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.settle()

    def screenshot(self, path, whole=True):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]))
