"""The page's files as the server gives them out: who gets them, with which headers; and the token of the local admin.

    SERVER=build/gcc/sandbox-apiserver python3 tests/ui/serving.py
"""
import json, os, re, stat

from server import AGENTS, ROOT, Server, Tap

tap = Tap()
server = Server(node=False)


def status_of(answer):
    status, _, body = answer
    found = json.loads(body)
    return status, found["kind"], found["reason"]


try:
    # ---- files ----
    types = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml", "mjs": "text/javascript; charset=utf-8"}
    files = sorted(os.listdir(f"{ROOT}/ui"))
    tap.ok(len(files) > 5, "there are files", files)
    for name in files:
        with open(f"{ROOT}/ui/{name}", "rb") as file:
            source = file.read()
        code, headers, body = server.ask("GET", f"/ui/{name}")
        tap.equal((code, headers.get("content-type"), body == source), (200, types[name.rsplit(".")[-1]], True), f"{name} is served as it is")
        tap.equal(server.ask("GET", f"/ui/{name}", headers={"If-None-Match": headers["etag"]})[::2], (304, b""), f"{name} is not sent twice")
    page = server.ask("GET", "/ui/index.html")[2]
    for path in ("/ui/", "/ui", "/ui/?x=y"):
        tap.equal(server.ask("GET", path)[2], page, f"{path} is the page")
    code, headers, body = server.ask("HEAD", "/ui/")
    tap.equal((code, headers["content-length"], body), (200, str(len(page)), b""), "HEAD answers without the file")
    tap.equal(re.findall(rb'(?:src|href)="([^"]*)"', page), [b"/ui/icon.svg", b"/ui/style.css", b"/ui/app.mjs"], "the page names files of the server alone")
    words = b"".join(server.ask("GET", f"/ui/{name}")[2] for name in files)
    tap.equal([u for u in re.findall(rb"https?://[^\s'\"]+", words) if u != b"http://www.w3.org/2000/svg"], [], "no file names another server")
    tap.ok(b"innerHTML" not in words and b"insertAdjacentHTML" not in words and b"eval(" not in words, "no text becomes markup or code")

    # ---- headers ----
    headers = server.ask("GET", "/ui/app.mjs")[1]
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    for name, value in {"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self'", "connect-src": "'self'",
                        "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'", "require-trusted-types-for": "'script'"}.items():
        tap.equal(policy.get(name), value, f"the policy says {name} {value}")
    for name, value in {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cross-origin-opener-policy": "same-origin",
                        "cross-origin-embedder-policy": "require-corp", "cross-origin-resource-policy": "same-origin", "x-frame-options": "DENY",
                        "cache-control": "no-cache"}.items():
        tap.equal(headers.get(name), value, f"{name} is {value}")
    tap.ok("set-cookie" not in headers, "there are no cookies", headers)

    # ---- what is not there, and what is not done ----
    for path in ("/ui/nothing", "/ui/../ui/app.mjs", "/ui/%2e%2e/metrics", "/ui//app.mjs", "/ui/app.mjs/x", "/ui/APP.MJS", "/ui/app.mjs%00"):
        code, headers, body = server.ask("GET", path)
        tap.ok(code in (400, 404) and body != page and b"import" not in body, f"no file at {path}", (code, body[:200]))
    tap.equal(status_of(server.ask("GET", "/ui/nothing")), (404, "Status", "NotFound"), "what is not there is a Status")
    tap.equal(status_of(server.ask("GET", "/uix")), (403, "Status", "Forbidden"), "what only begins alike is another path")
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        code, headers, body = server.ask(method, "/ui/", token=server.token)
        tap.equal((code, json.loads(body)["reason"], headers["allow"]), (405, "MethodNotAllowed", "GET, HEAD"), f"no {method}, even for the admin")
        tap.equal(server.ask(method, "/ui/")[0], 403, f"nor for somebody unknown")

    # ---- the token ----
    tap.equal([stat.S_IMODE(os.stat(f"{server.data}/{f}").st_mode) for f in ("ui.url", "admin.kubeconfig")], [0o600, 0o600], "what holds it is its owner's alone")
    tap.ok(re.fullmatch(rf"https://127\.0\.0\.1:{server.port}/ui/#token=[\w-]+\.[\w-]+\.[\w-]+", server.address), "the address has it behind the #", server.address[:60])
    review = server.admin("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    tap.equal(review["status"]["userInfo"], {"username": "admin", "groups": ["system:masters", "system:authenticated"]}, "it is the admin's")
    with open(f"{server.data}/admin.kubeconfig") as file:
        tap.ok(f"token: {server.token}" in file.read(), "the kubeconfig has the same")
    head, claims, signature = server.token.split(".")
    for name, bad in {"cut": server.token[:-1], "with claims of another": f"{head}.{server.account('other').split('.')[1]}.{signature}", "without a signature": f"{head}.{claims}."}.items():
        tap.equal(server.ask("GET", f"{AGENTS}/sandboxes", token=bad)[0], 401, f"one {name} is nobody's")
    first = server.token
    server.kill()
    tap.ok(server.start(), "the server starts again")
    tap.equal(server.ask("GET", f"{AGENTS}/sandboxes", token=first)[0], 200, "it is good for the next server as well")
    server.kill()
    os.remove(f"{server.data}/token.key")
    tap.ok(server.start(), "and again, with another key")
    tap.equal(server.ask("GET", f"{AGENTS}/sandboxes", token=first)[0], 401, "then it is not good any more")
    tap.equal(server.ask("GET", f"{AGENTS}/sandboxes", token=server.token)[0], 200, "but the new one is")
    tap.ok(first not in server.words() and server.token not in server.words(), "no line of the log has one")
    for path in ("/metrics", "/apis"):
        tap.equal(server.ask("GET", path)[0], 403, f"nobody may ask {path}, page or not")
finally:
    codes = server.close()
tap.equal(codes, [0], "the server ends with exit code 0")
tap.end()
