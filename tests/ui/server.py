"""A server without a cluster and a simulated node on 127.0.0.1, for tests of the page: started, asked and ended; and TAP."""
import http.client, json, os, random, signal, ssl, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("SERVER", os.path.join(ROOT, "build/gcc/sandbox-apiserver"))
AGENTS = "/apis/agents.x-k8s.io/v1beta1"
EXTENSIONS = "/apis/extensions.agents.x-k8s.io/v1beta1"
START_S = 60


def within(limit_s, check):
    """Tries until it is true; what it was at last."""
    end = time.monotonic() + limit_s
    while True:
        value = check()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.05)


class Server:
    """node: whether there is one. A port by chance may be taken, then another is tried."""

    def __init__(self, node=True):
        self.folder = tempfile.TemporaryDirectory(prefix="ui-server-")
        self.data = os.path.join(self.folder.name, "data")
        self.server = self.node = None
        for _ in range(5):
            self.port = random.randrange(20000, 32000)
            if self.start():
                break
        else:
            raise RuntimeError("the server does not start:\n" + self.words())
        if node:
            self.node = self._run("node", [os.path.join(os.path.dirname(PROGRAM), "sandbox-node"), "--simulate",
                                           f"--kubeconfig={self.data}/node.kubeconfig"])

    def _run(self, name, command):
        with open(os.path.join(self.folder.name, f"{name}.log"), "ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def words(self):
        with open(os.path.join(self.folder.name, "server.log"), errors="replace") as log:
            return log.read()

    def start(self):
        """Returns when it is ready, False when it ended instead."""
        program = [PROGRAM, "--standalone", f"--data-dir={self.data}", f"--secure-port={self.port}"]
        self.server = self._run("server", program)
        within(START_S, lambda: self.server.poll() is not None or self.is_ready())
        return self.server.poll() is None

    def is_ready(self):
        try:
            return self.ask("GET", "/readyz")[0] == 200 and self.ask("GET", "/ui/")[0] == 200
        except OSError:
            return False

    def kill(self):
        self.server.kill()
        self.server.wait()

    def close(self):
        """Their exit codes."""
        ended = [p for p in (self.node, self.server) if p and p.poll() is None]
        for process in ended:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        self.folder.cleanup()
        return [process.returncode for process in ended]

    # ---- asking ----

    @property
    def address(self):
        """Of the page, with the admin's token."""
        with open(os.path.join(self.data, "ui.url")) as file:
            return file.read().strip()

    @property
    def token(self):
        return self.address.split("#token=")[1]

    def connect(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=ssl.create_default_context(cafile=f"{self.data}/ca.crt"))

    def ask(self, method, path, body=None, token=None, headers=None, on=None):
        """(status, headers, bytes). on: a connection to use."""
        connection = on or self.connect()
        sent = {"Content-Type": "application/json", **(headers or {})}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        connection.request(method, path, json.dumps(body) if body is not None else None, sent)
        response = connection.getresponse()
        answer = response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        if on is None:
            connection.close()
        return answer

    def admin(self, method, path, body=None, on=None):
        """As the admin; the object. Anything but a success is an error."""
        status, _, content = self.ask(method, path, body, self.token, on=on,
                                      headers={"Content-Type": "application/merge-patch+json"} if method == "PATCH" else None)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {content[:300]}")
        return json.loads(content)

    def account(self, name):
        """The token of a new ServiceAccount."""
        path = "/api/v1/namespaces/default/serviceaccounts"
        self.admin("POST", path, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return self.admin("POST", f"{path}/{name}/token", request)["status"]["token"]

    def spki(self):
        """What the browser is to trust the server's certificate by."""
        command = (f"openssl x509 -in {self.data}/serving.crt -pubkey -noout | openssl pkey -pubin -outform der | "
                   "openssl dgst -sha256 -binary | base64")
        return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout.strip()


def sandbox(name, **metadata):
    return {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": name, **metadata},
            "spec": {"podTemplate": {"spec": {"containers": [{"name": "main", "image": "example.org/app:1"}]}}}}


class Tap:
    number = bad = 0

    def ok(self, is_good, text, detail=""):
        self.number += 1
        self.bad += not is_good
        print(f"{'ok' if is_good else 'not ok'} {self.number} - {text}", flush=True)
        if not is_good:
            print("\n".join("#   " + line[:500] for line in str(detail).splitlines()[:25]), flush=True)

    def equal(self, got, want, text):
        self.ok(got == want, text, f"expected: {want!r}\ngot:      {got!r}")

    def skip_all(self, why):
        print(f"ok 1 - {os.path.basename(sys.argv[0])} # skip {why}\n1..1")
        sys.exit(0)

    def end(self):
        print(f"1..{self.number}")
        sys.exit(1 if self.bad else 0)
