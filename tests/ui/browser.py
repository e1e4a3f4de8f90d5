"""A headless Chromium, driven over its DevTools protocol through a pipe: no port is opened, and nothing but Python's own library is needed."""
import base64, json, os, queue, subprocess, tempfile, threading, time

LIMIT_S = 20  # that any one thing may take


class Browser:
    """One browser with one page. Keeps what the page's console and the network complained of."""

    def __init__(self, program, spki, size=(1360, 860)):
        self.folder = tempfile.TemporaryDirectory(prefix="ui-browser-")
        to_read, self.to = os.pipe()
        self.of, to_write = os.pipe()
        flags = [
            "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}",
            f"--ignore-certificate-errors-spki-list={spki}", f"--window-size={size[0]},{size[1]}",
            "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-gpu",
            "--disable-dev-shm-usage", "--disable-extensions", "--no-sandbox",  # tests run as root, in a namespace or a container
        ]

        self.log = open(os.path.join(self.folder.name, "log"), "wb")
        hand_over = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}'  # the browser reads from 3 and writes to 4
        self.process = subprocess.Popen(["bash", "-c", hand_over, program, *flags, "about:blank"], pass_fds=(to_read, to_write),
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        os.close(to_read), os.close(to_write)
        self.number, self.replies, self.complaints, self.answers = 0, {}, [], []
        self.arrived = threading.Condition()
        self.session = None
        threading.Thread(target=self._read, daemon=True).start()
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Audits", "Accessibility"):
            self._send(f"{domain}.enable")

    def close(self):
        try:
            self.session = None
            self._send("Browser.close")
            self.process.wait(10)
        except Exception:
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        self.log.close()
        for _ in range(20):  # its helpers may write for a moment yet
            try:
                return self.folder.cleanup()
            except OSError:
                time.sleep(0.1)

    # ---- messages ----

    def _read(self):
        rest = b""
        while True:
            try:
                piece = os.read(self.of, 1 << 16)
            except OSError:
                return
            if not piece:
                return
            *messages, rest = (rest + piece).split(b"\0")
            for message in messages:
                self._take(json.loads(message))

    def _take(self, message):
        with self.arrived:
            if "id" in message:
                self.replies[message["id"]] = message
            else:
                self._note(message["method"], message["params"])
            self.arrived.notify_all()

    def _note(self, method, params):
        if method == "Runtime.exceptionThrown":
            self.complaints.append("exception: " + json.dumps(params["exceptionDetails"].get("exception", {}).get("description", params)))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append("console: " + json.dumps([a.get("value") for a in params["args"]]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            # Whoever makes an interface on this machine has the browser break off what it reads; the page goes on by itself.
            if "net::ERR_NETWORK_CHANGED" not in params["entry"]["text"]:
                self.complaints.append(f"log: {params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Audits.issueAdded" and params["issue"]["code"] != "PerformanceIssue":
            self.complaints.append("issue: " + json.dumps(params["issue"])[:400])
        elif method == "Network.responseReceived":
            self.answers.append((params["response"]["url"], params["response"]["status"]))

    def _send(self, method, **params):
        self.number += 1
        number, message = self.number, {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        with self.arrived:
            if not self.arrived.wait_for(lambda: number in self.replies, LIMIT_S):
                raise TimeoutError(f"{method} was not answered")
            reply = self.replies.pop(number)
        if "error" in reply:
            raise RuntimeError(f"{method}: {reply['error']['message']}")
        return reply["result"]

    # ---- what tests do ----

    def go(self, url):
        self._send("Page.navigate", url=url)

    def run(self, script):
        """The value of an expression in the page; promises are waited for."""
        result = self._send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description"))
        return result["result"].get("value")

    def until(self, script, limit_s=LIMIT_S):
        """Waits until the expression is true; what it was at last is the value. What it speaks of may not be there yet."""
        end = time.monotonic() + limit_s
        while True:
            try:
                value = self.run(script)
            except RuntimeError:
                value = None
            if value or time.monotonic() > end:
                return value
            time.sleep(0.05)

    KEYS = {"Enter": ("\r", 13), "Escape": (None, 27), "Tab": (None, 9), "ArrowDown": (None, 40), "ArrowUp": (None, 38), "ArrowLeft": (None, 37), "Backspace": (None, 8)}

    def key(self, name, ctrl=False):
        """A key as its user would press it."""
        text, code = self.KEYS.get(name, (name, ord(name.upper()[0])))
        event = {"key": name, "windowsVirtualKeyCode": code, "modifiers": 2 if ctrl else 0}
        if text and not ctrl:
            event["text"] = text
        self._send("Input.dispatchKeyEvent", type="keyDown", **event)
        self._send("Input.dispatchKeyEvent", type="keyUp", **{k: v for k, v in event.items() if k != "text"})

    def type(self, text):
        self._send("Input.insertText", text=text)

    def dark(self, is_dark):
        self._send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}])

    def resize(self, width, height):
        self._send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def nodes(self):
        """Role and name of all that assistive programs are told of."""
        return [(n["role"]["value"], n.get("name", {}).get("value", ""))
                for n in self._send("Accessibility.getFullAXTree")["nodes"] if not n["ignored"]]

    def picture(self, path):
        data = self._send("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
