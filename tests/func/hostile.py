"""A good client, and many bad ones, of a server on 127.0.0.1. Called by tests/func/hostile.sh; standard library only.

    hostile.py good PORT DIR SECONDS     one after the other makes, reads, changes and takes away objects on one connection, and watches them
                                         on another: every answer and every event must be right. Prints `N answers, median M us`.
    hostile.py bad PORT DIR SECONDS CORPUS     every kind of bad input at once: each must end in an answer that blames the client (or in
                                         503), or in a closed connection. Prints how often each was made.

DIR has the certificates. Exit code 1 when anything was wrong.
"""

import glob
import gzip
import http.client
import json
import os
import random
import socket
import ssl
import statistics
import sys
import threading
import time

MODE, PORT, DIR, SECONDS = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
A = "/apis/agents.x-k8s.io/v1beta1/namespaces/"
END = time.monotonic() + SECONDS
WRONG = []
PATIENCE = 40  # seconds until a server that neither answers nor closes is at fault; its own limits are shorter


def context(is_known=True, alpn=("http/1.1",)):
    c = ssl.create_default_context(cafile=DIR + "/serving-ca.crt")
    if is_known:
        c.load_cert_chain(DIR + "/admin.crt", DIR + "/admin.key")
    c.set_alpn_protocols(list(alpn))
    return c


def connection(is_known=True, timeout=PATIENCE):
    return http.client.HTTPSConnection("localhost", PORT, context=context(is_known), timeout=timeout)


def sandbox(name, **metadata):
    return {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": name, **metadata},
            "spec": {"podTemplate": {"spec": {"containers": [{"name": "main", "image": "example.org/app:1"}]}}}}


def expect(what, is_so):
    if not is_so:
        WRONG.append(what)


# ---- the good one ----


class Good:
    def __init__(self):
        self.connection, self.times, self.expected, self.seen = connection(), [], [], []
        self.base = A + f"good-{os.getpid()}/sandboxes"

    def ask(self, method, path, body=None, media="application/json"):
        began = time.monotonic()
        self.connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": media} if body else {})
        answer = self.connection.getresponse()
        data = json.loads(answer.read())
        self.times.append(time.monotonic() - began)
        return answer.status, data

    def watch(self, start):
        stream = connection()
        stream.request("GET", f"{self.base}?watch=1&resourceVersion={start}")
        answer = stream.getresponse()
        while len(self.seen) < 3 or self.seen[-1] != ("DELETED", "last"):
            event = json.loads(answer.readline())
            self.seen.append((event["type"], event["object"]["metadata"]["name"]))
        stream.close()

    def life(self, name):
        """One object, whose events are these."""
        code, made = self.ask("POST", self.base, sandbox(name))
        expect(f"POST {code}", code == 201)
        code, read = self.ask("GET", f"{self.base}/{name}")
        expect(f"GET {code}", code == 200 and read == made)
        code, changed = self.ask("PATCH", f"{self.base}/{name}", {"metadata": {"labels": {"a": name}}}, "application/merge-patch+json")
        expect(f"PATCH {code}", code == 200 and changed["metadata"]["labels"] == {"a": name})
        code, listed = self.ask("GET", f"{self.base}?labelSelector=a%3D{name}")
        expect(f"list {code}", code == 200 and [i["metadata"]["uid"] for i in listed["items"]] == [made["metadata"]["uid"]])
        code, _ = self.ask("DELETE", f"{self.base}/{name}")
        expect(f"DELETE {code}", code == 200)
        self.expected += [(event, name) for event in ("ADDED", "MODIFIED", "DELETED")]

    def run(self):
        _, empty = self.ask("GET", self.base)
        watcher = threading.Thread(target=self.watch, args=[empty["metadata"]["resourceVersion"]])
        watcher.start()
        number = 0
        while time.monotonic() < END:
            number += 1
            self.life(f"o{number}")
        self.life("last")
        watcher.join(PATIENCE)
        expect("the watch came to its end", not watcher.is_alive())
        expect("the watch saw everything once and in order", self.seen == self.expected)
        print(f"{len(self.times)} answers, median {int(statistics.median(self.times) * 1e6)} us")


# ---- the bad ones: each makes one bad input, or several ----

TYPES = {"json": "application/json", "object": "application/json", "yaml": "application/yaml", "patch": "application/json-patch+json",
         "apply": "application/apply-patch+yaml"}
ENEMY = A + "enemy/sandboxes"


def corpus(*names):
    return [(name, open(p, "rb").read()) for name in names for p in sorted(glob.glob(f"{sys.argv[5]}/{name}/*")) if os.path.isfile(p)]


def asked(method, path, body=None, headers=None, is_known=True):
    """An answer, or a closed connection; what takes longer than PATIENCE is neither."""
    c = connection(is_known)
    try:
        c.request(method, path, body, headers or {})
        answer = c.getresponse()
        data = answer.read()
        is_own = answer.status == 500 and b"failed to create typed" in data  # what kube-apiserver answers to an apply that repeats a key
        expect(f"{method} {path[:80]}: {answer.status} {data[:200]}", answer.status < 500 or answer.status == 503 or is_own)
    except TimeoutError:
        expect(f"{method} {path[:80]}: no answer", False)
    except (OSError, http.client.HTTPException):
        pass
    finally:
        c.close()


def sent(data, alpn=("http/1.1",), is_known=True):
    """Raw bytes over TLS; then nothing more comes, so the server must close."""
    try:
        with socket.create_connection(("127.0.0.1", PORT), PATIENCE) as plain:
            with context(is_known, alpn).wrap_socket(plain, server_hostname="localhost") as s:
                s.sendall(data)
                s.unwrap()
    except (OSError, ValueError):
        pass


def bodies():
    name, data = random.choice(BODIES)
    path = ENEMY + ("/x" if name in ("patch", "apply") else "")
    asked("PATCH" if path != ENEMY else "POST", path + "?dryRun=All&fieldManager=enemy", data, {"Content-Type": TYPES[name]})


def streams():
    name, data = random.choice(STREAMS)
    sent(data, ("h2",) if name == "h2" else ("http/1.1",))


def frames():
    head = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
    sent(head + b"".join(len(p).to_bytes(3, "big") + bytes([random.randrange(12), random.randrange(64)]) + random.randrange(9).to_bytes(4, "big") + p
                         for p in (os.urandom(random.randrange(60)) for _ in range(40))), ("h2",))


def no_tls():
    try:
        with socket.create_connection(("127.0.0.1", PORT), 5) as s:
            s.sendall(random.choice([os.urandom(300), b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(200)]))
            s.settimeout(0.2)
            s.recv(100)
    except OSError:
        pass


def slow():
    """A request that never comes to its end, given up after a while."""
    try:
        with socket.create_connection(("127.0.0.1", PORT), 5) as plain, context().wrap_socket(plain, server_hostname="localhost") as s:
            for byte in b"GET /apis HTTP/1.1\r\nHost: x\r\nX-Slow: ":
                s.sendall(bytes([byte]))
                if time.monotonic() > END:
                    return
                time.sleep(0.1)
    except OSError:
        pass


def crowd():
    """Connections that say nothing, all at once."""
    held = []
    try:
        for _ in range(250):
            held.append(socket.create_connection(("127.0.0.1", PORT), 5))
        time.sleep(min(2, max(0, END - time.monotonic())))
    except OSError:
        pass
    for s in held:
        s.close()


def huge():
    asked("POST", ENEMY, b"a" * (4 << 20), {"Content-Type": "application/json"})
    asked("POST", ENEMY, iter([b"[" * 100000] * 50), {"Content-Type": "application/json", "Transfer-Encoding": "chunked"})


def deep():
    nested = random.choice([b"[", b'{"a":']) * 9000
    asked("POST", ENEMY + "?dryRun=All", b'{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","spec":' + nested, {"Content-Type": "application/json"})
    asked("POST", ENEMY, b"a: &a [" + b"x," * 50 + b"]\n" + b"".join(b"%c: &%c [" % (i, i) + b"*%c," % (i - 1) * 50 + b"]\n" for i in range(98, 106)),
          {"Content-Type": "application/yaml"})


def bomb():
    asked("POST", ENEMY, BOMB, {"Content-Type": "application/json", "Content-Encoding": "gzip"})


def watches():
    """A flood of streams, dropped without a word."""
    opened = []
    for _ in range(20):
        c = connection()
        try:
            c.request("GET", ENEMY + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
            opened.append(c)
        except OSError:
            c.close()
    for c in opened:
        c.close()


def strangers():
    asked("GET", ENEMY, is_known=False)
    asked("GET", ENEMY, headers={"Authorization": "Bearer " + "x" * random.choice([0, 10, 9000])}, is_known=False)
    asked("GET", ENEMY, headers={"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}, is_known=False)
    asked("GET", ENEMY, headers={"Impersonate-User": "somebody"})


def questions():
    asked("GET", f"{ENEMY}?labelSelector={'a,' * 3000}&limit=1")
    asked("GET", f"{ENEMY}?continue={'e' * 4000}&fieldSelector={'%5C' * 500}")
    asked(random.choice(["FOO", "TRACE", "OPTIONS", "PUT"]), "/" + "%2e/" * 2000)


ENEMIES = (bodies, streams, frames, no_tls, slow, crowd, huge, deep, bomb, watches, strangers, questions)


def repeated(enemy, counts):
    try:
        while time.monotonic() < END:
            enemy()
            counts[enemy.__name__] += 1
    except Exception as e:  # of the test itself
        WRONG.append(f"{enemy.__name__}: {e!r}")


if MODE == "good":
    Good().run()
else:
    BODIES, STREAMS = corpus(*TYPES), corpus("h2", "request")
    BOMB = gzip.compress(b"[" * (64 << 20))
    made = dict.fromkeys((e.__name__ for e in ENEMIES), 0)
    threads = [threading.Thread(target=repeated, args=[e, made]) for e in ENEMIES]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print("# bad: " + ", ".join(f"{name} {n}" for name, n in made.items()))
    expect(f"all were made: {made}", all(made.values()))
for text in WRONG[:10]:
    print(text)
sys.exit(1 if WRONG else 0)
