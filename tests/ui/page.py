"""The page in a headless Chromium, over a server without a cluster and a simulated node.

    SERVER=build/gcc/sandbox-apiserver python3 tests/ui/page.py
    python3 tests/ui/page.py build/ui.png docs/ui.svg    pictures of the page (make ui-screenshot); nothing is tested then
"""
import json, os, shutil, subprocess, sys
from concurrent.futures import ThreadPoolExecutor

from browser import Browser
from server import AGENTS, EXTENSIONS, ROOT, Server, Tap, sandbox, within

MANY = 1000  # Sandboxes
WRITERS = 8  # that make them
HTML = "<img src=x onerror=\"window.pwned=1\"><script>window.pwned=2</script>"
NS = "/namespaces/default"
POOL, POOLS, CLAIMS = "python", f"{EXTENSIONS}{NS}/sandboxwarmpools", f"{EXTENSIONS}{NS}/sandboxclaims"
SANDBOXES = f"{AGENTS}{NS}/sandboxes"
TEMPLATE = {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxTemplate", "metadata": {"name": POOL},
            "spec": {"podTemplate": {"spec": {"containers": [{"name": "main", "image": "localhost/agent-sandbox/python:dev", "command": ["sleep", "infinity"]}]}}}}
WARM_POOL = {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool", "metadata": {"name": POOL},
             "spec": {"replicas": 2, "sandboxTemplateRef": {"name": POOL}}}


def claim(name):
    return {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "metadata": {"name": name}, "spec": {"warmPoolRef": {"name": POOL}}}


def fill(server):
    server.admin("POST", f"{EXTENSIONS}{NS}/sandboxtemplates", TEMPLATE)
    server.admin("POST", POOLS, WARM_POOL)


# ---- what stands in the page, as expressions of its language ----

def rows(kind):
    """Texts of a table's cells, without the ages."""
    return f"[...document.querySelectorAll('#{kind} tbody tr')].map((r) => [...r.cells].slice(0, -1).map((c) => c.textContent).join('|'))"


def has_row(kind, words):
    return f"{rows(kind)}.some((r) => {json.dumps(words)}.every((w) => r.includes(w)))"


def cell(kind, name):
    return f"[...document.querySelectorAll('#{kind} td button')].find((b) => b.textContent === {json.dumps(name)})"


def text(selector):
    return f"document.querySelector({json.dumps(selector)}).textContent"


def press(label):
    return f"[...document.querySelectorAll('#detail .actions button')].find((b) => b.textContent === {json.dumps(label)} && !b.disabled)?.click() ?? true"


def is_open(dialog):
    return f"document.getElementById({json.dumps(dialog)}).open"


def fill_field(field, value, event="input"):
    return f"{{ const f = document.getElementById({json.dumps(field)}); f.value = {json.dumps(value)}; f.dispatchEvent(new Event('{event}')); true }}"


class Scene:
    def __init__(self, tap, server, browser):
        self.tap, self.server, self.browser = tap, server, browser

    def becomes(self, expression, words, limit_s=20):
        value = self.browser.until(expression, limit_s)
        self.tap.ok(value, words, None if value else self.browser.run("document.body.innerText")[:1500])

    def choose(self, kind, name):
        self.browser.until(f"{cell(kind, name)} !== undefined")
        self.browser.run(f"{cell(kind, name)}.click()")

    # ---- in order ----

    def sign_in(self):
        b = self.browser
        b.go(self.server.address.split("#")[0])
        self.becomes(is_open("sign-in"), "who comes without a token is asked for one")
        b.until("document.activeElement.id === 'token'")
        b.type("no-token"), b.key("Enter")
        self.becomes(f"{is_open('sign-in')} && {text('#sign-in-why')} === 'Unauthorized'", "a wrong one is refused in the server's words")
        b.complaints.clear()  # the browser's own lines about the 401
        b.go(self.server.address)
        self.becomes(f"{text('#state')} === 'Live'", "the address with the token opens the page")
        self.tap.equal(b.run("location.href"), self.server.address.split("#")[0], "the token is not left in the address")
        self.tap.equal(b.run("[document.cookie, localStorage.length, sessionStorage.length]"), ["", 0, 1], "it is kept in this tab alone")

    def appear(self):
        fill(self.server)
        self.becomes(has_row("pools", [POOL, "2 / 2"]), "a pool appears, and becomes ready")
        self.becomes(f"{rows('sandboxes')}.filter((r) => r.includes('Ready|Running')).length === 2", "so do its Sandboxes")
        self.server.admin("POST", CLAIMS, claim("session-1"))
        name = self.server.admin("GET", f"{CLAIMS}/session-1")["status"]["sandbox"]["name"]
        self.becomes(has_row("claims", ["session-1", "Ready", name]), "a claim appears with its Sandbox")
        self.becomes(f"{rows('sandboxes')}.length === 3", "and the pool fills up")

    def look(self):
        b = self.browser
        self.choose("claims", "session-1")
        self.becomes(f"!document.getElementById('detail').hidden && {text('#detail h2')} === 'session-1'", "a click shows an object")
        self.becomes(f"{text('#detail')}.includes('DependenciesReady')", "with its conditions")
        self.becomes(f"{text('#detail')}.includes('SandboxAdopted')", "and its Events")
        self.tap.ok("shutdownPolicy" in b.run(text("#detail pre")) or "warmPoolRef:" in b.run(text("#detail pre")), "and as YAML", b.run(text("#detail pre")))
        name = self.server.admin("GET", f"{CLAIMS}/session-1")["status"]["sandbox"]["name"]
        b.run(press("Show sandbox"))
        self.becomes(f"{text('#detail h2')} === {json.dumps(name)} && {text('#sandboxes tr[aria-selected=true] button')} === {json.dumps(name)}", "and its Sandbox is a button away")
        self.choose("claims", "session-1")
        b.key("Escape")
        self.becomes("document.getElementById('detail').hidden", "Escape closes it")
        self.tap.equal(b.run("document.activeElement.textContent"), "session-1", "and goes back to the row")

    def keys(self):
        b = self.browser
        b.run(f"document.querySelector('#sandboxes td button').focus()")
        first = b.run("document.activeElement.textContent")
        b.key("ArrowDown")
        self.tap.ok(b.run("document.activeElement.textContent") > first, "arrows go from row to row")
        b.key("ArrowUp"), b.key("Enter")
        self.becomes(f"{text('#detail h2')} === {json.dumps(first)}", "Enter opens one")
        b.key("Escape"), b.key("/")
        self.tap.equal(b.run("document.activeElement.id"), "filter", "a slash goes to the filter")
        b.type("no such words")
        self.becomes(f"{rows('sandboxes')}.length === 0 && {text('#sandboxes .empty')}.includes('filter')", "which hides what it does not find")
        b.run(fill_field("filter", ""))
        self.becomes(f"{rows('sandboxes')}.length === 3", "and shows it again")
        nodes = b.nodes()
        for want in [("textbox", "Namespace"), ("searchbox", "Filter"), ("table", "Sandboxes 3"), ("status", None), ("button", "Sign out")]:
            self.tap.ok(any(n[0].lower() in (want[0], want[0] + "withcombobox", "combobox" if want[0] == "textbox" else "") and (want[1] is None or want[1] in n[1]) for n in nodes),
                        f"those who do not see are told of {want[0]} {want[1] or ''}", nodes[:60])

    def act(self):
        self.server.admin("POST", SANDBOXES, sandbox("mine"))
        self.choose("sandboxes", "mine")
        self.becomes(has_row("sandboxes", ["mine", "Ready|Running"]), "a Sandbox runs")
        self.becomes(press("Suspend"), "it is suspended")
        self.becomes(has_row("sandboxes", ["mine", "Suspended|Suspended"]), "which the table says")
        self.tap.equal(self.server.admin("GET", f"{SANDBOXES}/mine")["spec"]["operatingMode"], "Suspended", "and the API")
        self.becomes("[...document.querySelectorAll('#detail .actions button')].some((b) => b.textContent === 'Resume')", "then it can be resumed")
        self.browser.run(press("Resume"))
        self.becomes(has_row("sandboxes", ["mine", "Ready|Running"]), "and runs again")
        self.browser.run(press("Delete"))
        self.becomes(is_open("confirm") + f" && {text('#confirm')}.includes('mine')", "deleting is asked about")
        self.browser.key("Escape")
        self.becomes(f"!{is_open('confirm')}", "and can be left")
        self.tap.ok(self.server.admin("GET", f"{SANDBOXES}/mine"), "without harm")
        self.browser.until("[...document.querySelectorAll('#detail .actions button')].every((b) => !b.disabled)")
        self.browser.run(press("Delete"))
        self.browser.until(is_open("confirm"))
        self.browser.run("document.getElementById('confirm-yes').click()")
        self.becomes(f"!{has_row('sandboxes', ['mine'])}", "a deleted one goes")
        self.becomes("document.getElementById('detail').hidden", "and is not looked at any more")

    def claim_one(self):
        self.choose("pools", POOL)
        self.browser.run(press("New claim"))
        self.becomes(is_open("claim"), "a pool is claimed from")
        self.browser.run(fill_field("claim-name", "Not A Name"))
        self.browser.run("document.querySelector('#claim button[type=submit]').click()")
        self.becomes(f"!document.getElementById('notice').hidden && {text('#notice-text')}.includes('RFC 1123')", "a bad name is refused in the server's words")
        self.browser.complaints.clear()  # the browser's own line about the 422
        self.browser.until("[...document.querySelectorAll('#detail .actions button')].every((b) => !b.disabled)")
        self.browser.run(press("New claim"))
        self.browser.until(is_open("claim"))
        self.browser.run(fill_field("claim-name", "session-2"))
        self.browser.run("document.querySelector('#claim button[type=submit]').click()")
        self.becomes(has_row("claims", ["session-2", "Ready"]), "a good one has its Sandbox")
        self.tap.ok(self.browser.run("document.getElementById('notice').hidden"), "and the message is gone")

    def hostile(self):
        b, server = self.browser, self.server
        made = server.admin("POST", SANDBOXES, sandbox("evil", annotations={"example.org/note": HTML}))
        server.admin("POST", f"/api/v1{NS}/events", {
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "evil.1"}, "type": "Warning", "reason": "Evil", "message": HTML,
            "lastTimestamp": "2030-01-01T00:00:00Z", "source": {"component": "test"},
            "involvedObject": {"apiVersion": made["apiVersion"], "kind": "Sandbox", "namespace": "default", "name": "evil", "uid": made["metadata"]["uid"]}})
        self.choose("sandboxes", "evil")
        self.becomes(f"{text('#detail table:last-child')} && {text('#detail')}.includes('Evil<img')", "a message that is markup is shown as its text")
        self.tap.ok("<img src=x" in b.run(text("#detail pre")), "so is an annotation")
        self.choose("pools", POOL)
        b.run(press("New claim")), b.until(is_open("claim"))
        b.run(fill_field("claim-name", HTML[:60]))
        b.run("document.querySelector('#claim button[type=submit]').click()")
        self.becomes(f"{text('#notice-text')}.includes('<img')", "and what a refusal repeats")
        self.tap.equal(b.run("[document.querySelectorAll('img, script:not([src])').length, typeof window.pwned]"), [0, "undefined"], "nothing of it became part of the page")
        b.run("document.getElementById('notice-close').click()")
        b.complaints.clear()  # the browser's own line about the 422
        refused = b.run("(() => { try { document.body.innerHTML = '<b>'; return false; } catch { return true; } })()")
        self.tap.ok(refused and any("TrustedHTML" in c or "trusted" in c.lower() for c in b.complaints), "markup from texts is impossible at all", b.complaints)
        b.complaints.clear()

    def terminal(self):
        """The view of a terminal, over a connection of the test's own; what runs commands is tried by tests/node."""
        b = self.browser
        b.run("""(async () => {
            const { Terminal } = await import('/ui/terminal.mjs');
            window.sent = [];
            window.WebSocket = class extends EventTarget {
                constructor(url, protocols) { super(); Object.assign(this, { url, protocols, readyState: 1, bufferedAmount: 0 }); window.socket = this; setTimeout(() => this.dispatchEvent(new Event('open'))); }
                send(bytes) { window.sent.push([...bytes]); }
                close() { this.dispatchEvent(new Event('close')); }
                say(channel, text) { const e = new Event('message'); e.data = Uint8Array.from([channel, ...new TextEncoder().encode(text)]).buffer; this.dispatchEvent(e); }
            };
            window.terminal = new Terminal();
            window.terminal.open({ token: 'secret', get: async () => {} }, 'default', 'a-pod', ['main', 'other']); })()""")
        line = "[...document.querySelectorAll('#terminal-body .line')].map((l) => l.textContent.trimEnd()).filter((t) => t)"
        self.becomes(f"{text('#terminal-state')} === 'Connected'", "a terminal opens")
        self.tap.ok(b.run(f"socket.url.startsWith('wss://127.0.0.1:{self.server.port}/api/v1/namespaces/default/pods/a-pod/exec?container=main')"), "on the server itself", b.run("socket.url"))
        self.tap.equal(b.run("sent[0][0]"), 4, "it says how large it is")
        b.run("socket.say(1, '$ \\x1b[1;31mred\\x1b[m <b>x</b> \\x1b[38;2;1;2;3mtrue\\x1b[m\\r\\n> ')")
        self.becomes(f"JSON.stringify({line}) === JSON.stringify(['$ red <b>x</b> true', '>'])", "what a command prints is shown")
        self.tap.equal(b.run("[getComputedStyle(document.querySelector('#terminal-body .bold.f1')).color, getComputedStyle([...document.querySelectorAll('#terminal-body span')].find((s) => s.textContent === 'true')).color]"),
                       ["rgb(224, 108, 99)", "rgb(1, 2, 3)"], "in its colours")
        self.tap.equal(b.run("document.querySelectorAll('#terminal-body .cursor').length"), 1, "with a cursor")
        b.run("window.sent = []")
        b.type("ls"), b.key("Enter"), b.key("c", ctrl=True), b.key("ArrowUp"), b.key("/"), b.key("Tab")
        self.tap.equal(b.run("sent.flatMap((m) => m[0] === 0 ? String.fromCharCode(...m.slice(1)) : '?').join('')"), "ls\r\x03\x1b[A/\t", "keys go to it, and nowhere else")
        b.run("for (let i = 0; i < 5000; i++) socket.say(1, `line ${i}\\r\\n`)")
        self.becomes(f"{line}.at(-1) === 'line 4999' || {line}.includes('line 4999')", "much at once is no matter")
        self.tap.ok(b.run("document.querySelectorAll('#terminal-body .line').length") <= 2200, "and is not kept for ever")
        before = b.run("window.sent.length")
        b.resize(900, 700)
        self.becomes(f"sent.length > {before} && sent.at(-1)[0] === 4", "another size is told")
        b.resize(1360, 860)
        b.run("socket.say(3, JSON.stringify({ status: 'Failure', details: { causes: [{ reason: 'ExitCode', message: '7' }] } })); socket.close()")
        self.becomes(f"{text('#terminal-state')}.includes('exit code 7') && !document.getElementById('terminal-again').hidden", "how it ended is said")
        b.run("terminal.close()")
        self.tap.ok(b.run("document.getElementById('terminal').hidden"), "and it closes")
        self.quiet("with a terminal")

    def outage(self):
        self.server.kill()
        self.becomes(f"{text('#state')}.startsWith('Not connected')", "a server that is gone is said to be")
        self.tap.ok(self.browser.run(f"{rows('sandboxes')}.length") >= 3, "what was seen stays in sight")
        self.tap.ok(self.server.start(), "the server is started again")
        self.server.admin("POST", SANDBOXES, sandbox("later"))
        self.becomes(f"{text('#state')} === 'Live' && {has_row('sandboxes', ['later'])}", "and the page goes on by itself", 60)
        self.browser.complaints.clear()  # the browser's own lines about connections

    def many(self):
        """A change costs a row, whatever their number."""
        b, server = self.browser, self.server
        before = b.run(f"{rows('sandboxes')}.length")

        def make(first):
            connection = server.connect()
            for i in range(first, MANY, WRITERS):
                one = sandbox(f"many-{i:04}")
                one["spec"]["operatingMode"] = "Suspended"
                server.admin("POST", SANDBOXES, one, on=connection)
            connection.close()

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(make, range(WRITERS)))
        self.becomes(f"{rows('sandboxes')}.length === {before + MANY}", f"{MANY} more Sandboxes are in the table", 60)
        settled = f"{rows('sandboxes')}.filter((r) => /many-....[|]Suspended[|]Suspended[|][^|]/.test(r)).length === {MANY}"
        self.becomes(settled, "and the controller has looked at all of them", 60)
        b.run("""{ window.rowsTouched = new Set(); window.watcher = new MutationObserver((all) => all.forEach((m) => {
            const row = (m.target.closest ?? m.target.parentElement.closest).call(m.target.closest ? m.target : m.target.parentElement, 'tr');
            if (!m.target.closest?.('.age') && !m.target.parentElement?.closest('.age')) window.rowsTouched.add(row ? row.dataset.key : m.target.id || m.target.tagName); }));
            window.watcher.observe(document.querySelector('#sandboxes tbody'), { subtree: true, childList: true, characterData: true, attributes: true }); true }""")
        server.admin("PATCH", f"{SANDBOXES}/many-0500", {"spec": {"operatingMode": "Running"}})
        self.becomes(has_row("sandboxes", ["many-0500", "Ready|Running"]), "one of them is changed")
        self.tap.equal(b.run("[...window.rowsTouched]"), ["default/many-0500"], "and its row alone is drawn")
        b.run("window.watcher.disconnect()")
        took = b.run(f"""new Promise((resolve) => {{ const from = performance.now(); {fill_field('filter', 'many-0500')};
            const look = () => {rows('sandboxes')}.length === 1 ? resolve(performance.now() - from) : requestAnimationFrame(look); look(); }})""")
        self.tap.ok(took, "the filter finds it")
        print(f"# among {MANY} it took {took:.0f} ms, 120 of which it waits for more to be typed")
        b.run(fill_field("filter", ""))

    def rights(self):
        b, server = self.browser, self.server
        account = server.account("viewer")
        server.admin("POST", f"/apis/rbac.authorization.k8s.io/v1{NS}/rolebindings", {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "viewer"},
            "subjects": [{"kind": "ServiceAccount", "name": "viewer", "namespace": "default"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}})
        b.run("document.getElementById('leave').click()")
        self.becomes(f"{is_open('sign-in')} && {rows('sandboxes')}.length === 0", "who signs out leaves nothing to be seen")
        self.tap.equal(b.run("sessionStorage.length"), 0, "and no token")
        b.run(fill_field("token", account)), b.run("document.querySelector('#sign-in button').click()")
        self.becomes(f"{text('#sandboxes .empty')}.includes('cannot list resource')", "who may not see everything is told so")
        b.run(fill_field("namespace", "default", "change"))
        self.becomes(has_row("sandboxes", ["later"]), "and sees the namespace that is theirs")
        self.choose("sandboxes", "later")
        b.run(press("Suspend"))
        self.becomes(f"!document.getElementById('notice').hidden && {text('#notice-text')}.includes('cannot patch resource')", "what they may not do is refused in the server's words")
        self.tap.equal(server.admin("GET", f"{SANDBOXES}/later")["spec"]["operatingMode"], "Running", "and is not done")
        self.tap.equal([c for c in b.complaints if "403" not in c], [], "the browser complains of nothing else")
        b.complaints.clear()

    def quiet(self, when):
        self.tap.equal(self.browser.complaints, [], f"no error, no violation of the policy: {when}")
        self.browser.complaints.clear()


def leave_pictures(paths):
    server = Server()
    browser = Browser(chromium(), server.spki())
    try:
        browser.resize(1280, 560)
        fill(server)
        browser.go(server.address)
        browser.until(has_row("pools", ["2 / 2"]))
        for name in ("review-41", "notebook", "ci-3812"):
            server.admin("POST", CLAIMS, claim(name))
            browser.until(has_row("claims", [name, "Ready"]))
        slept = server.admin("GET", f"{CLAIMS}/notebook")["status"]["sandbox"]["name"]
        server.admin("PATCH", f"{SANDBOXES}/{slept}", {"spec": {"operatingMode": "Suspended"}})
        browser.until(has_row("claims", ["notebook", "Suspended"]) + "&&" + has_row("sandboxes", [slept, "SandboxSuspended"]))
        browser.run(f"{cell('claims', 'review-41')}.click()")
        browser.until(f"{text('#detail')}.includes('SandboxAdopted')")
        browser.until("document.getAnimations().length === 0")
        for path in paths:
            if path.endswith(".svg"):
                with open(os.path.join(ROOT, "tests/ui/draw.js")) as script, open(path, "w") as file:
                    file.write(browser.run(script.read()))
            else:
                browser.picture(path)
    finally:
        browser.close()
        server.close()


def chromium():
    """The program; installed, where that is possible."""
    if not shutil.which("chromium"):
        subprocess.run([os.path.join(ROOT, "hack/deps"), "page"], check=False, stdout=sys.stderr)
    return shutil.which("chromium")


def main():
    tap = Tap()
    if not chromium():
        tap.skip_all("no chromium here, and it cannot be installed")
    if sys.argv[1:]:
        return leave_pictures(sys.argv[1:])
    server = Server()
    browser = Browser(chromium(), server.spki())
    scene = Scene(tap, server, browser)
    try:
        scene.sign_in()
        for step in (scene.appear, scene.look, scene.keys, scene.act, scene.quiet, scene.claim_one, scene.hostile, scene.terminal, scene.outage, scene.many, scene.rights):
            step("after looking and pressing buttons") if step == scene.quiet else step()
        own = server.address.split("/ui/")[0]
        tap.equal([u for u, _ in browser.answers if not u.startswith(own) and u != "about:blank"], [], "nothing was asked of any other server")
    finally:
        browser.close()
        codes = server.close()
    tap.equal(codes, [0, 0], "node and server end with exit code 0")
    tap.end()


main()
