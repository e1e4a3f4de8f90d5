"""Both ends of what goes through the server into a Pod. Called by tests/func/reach.sh; standard library only.

    reach.py node DIR CERT KEY CA      a node's server: prints its port, and writes a line of JSON for each request into DIR/node.log. What it
                                       does is said by the container's name (of logs) or the command: see below.
    reach.py client PORT DIR           all that is to be seen from outside, in TAP without numbers: `ok TEXT`, `not ok TEXT: why`.
    reach.py idle PORT DIR N           opens N connections into the Pod, says `open`, and waits until all of them are ended by the server.

DIR has the certificates of the server and of its users.
"""

import base64
import json
import os
import socket
import ssl
import sys
import threading
import time
import urllib.parse

BIG = 32 << 20  # bytes, more than all buffers between the ends together
PATTERN = bytes(range(256)) * 64
PATIENCE = 60


def read_head(s):
    """The head of a request or an answer, and what came behind it."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = s.recv(16384)
        if not piece:
            return data.decode("latin-1"), b""
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return head.decode("latin-1"), rest


def read_all(s, data=b""):
    pieces = [data]
    try:
        while piece := s.recv(65536):
            pieces.append(piece)
    except OSError:
        pass
    return b"".join(pieces)


def pattern(at, n):
    at %= len(PATTERN)
    return (PATTERN * (n // len(PATTERN) + 2))[at:at + n]


# ---- the node ----


class Node:
    def __init__(self, folder, cert, key, ca):
        self.log, self.lock = open(folder + "/node.log", "a", buffering=1), threading.Lock()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert, key)
        self.context.load_verify_locations(ca)
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        print(self.socket.getsockname()[1], flush=True)

    def note(self, **what):
        with self.lock:
            self.log.write(json.dumps(what) + "\n")

    def serve(self):
        while True:
            s, _ = self.socket.accept()
            threading.Thread(target=self.answer, args=(s,), daemon=True).start()

    def answer(self, s):
        try:
            with self.context.wrap_socket(s, server_side=True) as t:
                head, rest = read_head(t)
                lines = head.split("\r\n")
                method, target, _ = lines[0].split(" ")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
                user = dict(part[0] for part in t.getpeercert()["subject"])["commonName"]
                self.note(method=method, target=target, headers=headers, user=user)
                url = urllib.parse.urlsplit(target)
                query = urllib.parse.parse_qs(url.query, keep_blank_values=True)
                what = query["command"][0] if "command" in query else url.path.split("/")[-1]
                getattr(self, what)(t, headers, rest)
        except (OSError, AttributeError, ValueError, KeyError) as e:
            self.note(error=repr(e))

    def plain(self, t, status, text):
        t.sendall(f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())

    def switch(self, t, headers):
        answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + headers.get("upgrade", "") + "\r\n"
        if "sec-websocket-protocol" in headers:
            answer += "Sec-WebSocket-Protocol: " + headers["sec-websocket-protocol"].split(",")[0].strip() + "\r\n"
        t.sendall((answer + "\r\n").encode())

    # logs

    def short(self, t, headers, rest):
        self.plain(t, "200 OK", "one\ntwo\n")

    def quiet(self, t, headers, rest):
        self.plain(t, "200 OK", "")

    def follow(self, t, headers, rest):
        t.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nfirst\n\r\n")
        read_all(t)
        self.note(gone="follow")

    def pieces(self, t, headers, rest):
        t.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for c in b"3\r\na\nb\r\n2;x=y\r\n\nc\r\n0\r\nTrailer: x\r\n\r\n":
            t.sendall(bytes([c]))
        read_all(t)

    def large(self, t, headers, rest):
        t.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {BIG}\r\n\r\n".encode())
        self.flood_out(t, "large")

    def waiting(self, t, headers, rest):
        self.plain(t, "400 Bad Request", "container is waiting to start")

    def failing(self, t, headers, rest):
        self.plain(t, "500 Internal Server Error", "disk is gone")

    def rude(self, t, headers, rest):
        t.sendall(b"SSH-2.0-hello\r\n\r\n")

    # raw connections

    def flood_out(self, t, name):
        sent = 0
        try:
            while sent < BIG:
                t.sendall(pattern(sent, 65536))
                sent += 65536
                if sent % (1 << 20) == 0:
                    self.note(sent=sent, name=name)
        except OSError:
            self.note(gone=name, sent=sent)

    def echo(self, t, headers, rest):
        self.switch(t, headers)
        t.sendall(rest)
        while piece := t.recv(65536):
            t.sendall(piece)
        t.sendall(b"bye")

    def flood(self, t, headers, rest):
        self.switch(t, headers)
        self.flood_out(t, "flood")

    def deaf(self, t, headers, rest):
        self.switch(t, headers)
        time.sleep(PATIENCE)

    def swallow(self, t, headers, rest):
        self.switch(t, headers)
        at, is_right = len(rest), rest == pattern(0, len(rest))
        while piece := t.recv(65536):
            is_right = is_right and piece == pattern(at, len(piece))
            at += len(piece)
        t.sendall(f"{at} {is_right}".encode())

    def end(self, t, headers, rest):
        self.switch(t, headers)
        t.sendall(b"the end")

    def wait(self, t, headers, rest):
        self.switch(t, headers)
        read_all(t)
        self.note(gone="wait")

    def refuse(self, t, headers, rest):
        self.plain(t, "400 Bad Request", "you must specify at least 1 of stdin, stdout, stderr")

    def silent(self, t, headers, rest):
        read_all(t)


# ---- the client ----

PORT, DIR = 0, ""
POD = "/api/v1/namespaces/default/pods/p/"


def context(user):
    c = ssl.create_default_context(cafile=DIR + "/serving-ca.crt")
    if user:
        c.load_cert_chain(f"{DIR}/{user}.crt", f"{DIR}/{user}.key")
    return c


def connect(user="admin", small=False):
    s = socket.socket()
    if small:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    s.connect(("127.0.0.1", PORT))
    s.settimeout(PATIENCE)
    return context(user).wrap_socket(s, server_hostname="localhost")


UPGRADE = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n"


def ask(path, method="POST", headers=UPGRADE, user="admin", ahead=b"", small=False):
    """Sends it; the connection, the answer's head, what came behind it."""
    s = connect(user, small)
    s.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode() + ahead)
    head, rest = read_head(s)
    return s, head, rest


def run(command, **options):
    return ask(POD + "exec?container=echo&stdin=1&stdout=1&command=" + command, **options)


def send_no_more(s):
    """Python's TLS sockets cannot do this by themselves."""
    socket.socket.shutdown(s, socket.SHUT_WR)


def notes(**wanted):
    with open(DIR + "/node.log") as f:
        lines = [json.loads(line) for line in f]
    return [n for n in lines if all(n.get(k) == v for k, v in wanted.items())]


def within(condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def widen(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)


def settled(count):
    """Waits until a number has stayed the same for a while, and returns it."""
    last, since = count(), time.monotonic()
    while time.monotonic() - since < 1:
        time.sleep(0.05)
        if (now := count()) != last:
            last, since = now, time.monotonic()
    return last


def test_bytes_go_both_ways():
    s, head, rest = run("echo")
    assert head.startswith("HTTP/1.1 101 ") and "Upgrade: SPDY/3.1" in head, head
    for i in range(100):
        s.sendall(b"%d " % i)
    send_no_more(s)
    assert read_all(s, rest) == b"".join(b"%d " % i for i in range(100)) + b"bye"


def test_what_is_sent_ahead_arrives():
    s, head, rest = run("echo", ahead=b"early ")
    s.sendall(b"late")
    send_no_more(s)
    assert read_all(s, rest) == b"early latebye"


def test_the_node_is_asked_as_a_kubelet():
    s, head, _ = ask(POD + "exec?stdin=true&stdout=1&stderr=0&tty=1&container=echo&command=echo&command=a%20b&command=", method="GET",
                     headers="Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Version: 13\r\n"
                             "Sec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io\r\nX-Other: 1\r\n")
    assert head.startswith("HTTP/1.1 101 ") and "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n" in head + "\r\n", head
    n = notes(method="GET")[-1]
    assert n["target"] == "/exec/default/p/echo?input=1&output=1&tty=1&command=echo&command=a%20b&command=", n
    assert n["user"] == "system:apiserver" and n["headers"]["sec-websocket-version"] == "13", n
    assert "x-other" not in n["headers"] and "authorization" not in n["headers"], n


def test_attach_and_ports_have_paths_of_their_own():
    ask(POD + "attach?stdout=1&container=echo")
    assert notes(method="POST")[-1]["target"] == "/attach/default/p/echo?output=1"
    ask(POD + "portforward?ports=80&ports=443", method="GET")
    assert notes(method="GET")[-1]["target"] == "/portForward/default/p?port=80,443"


def test_a_token_among_the_websocket_protocols():
    with open(DIR + "/token") as f:
        token = base64.urlsafe_b64encode(f.read().strip().encode()).decode().rstrip("=")
    secret = "base64url.bearer.authorization.k8s.io." + token
    headers = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: %s\r\n"
    _, head, _ = ask(POD + "exec?container=echo&stdin=1&command=echo", "GET", headers % (secret + ", v5.channel.k8s.io"), user=None)
    assert head.startswith("HTTP/1.1 101 "), head
    assert notes(method="GET")[-1]["headers"]["sec-websocket-protocol"] == "v5.channel.k8s.io"
    _, head, _ = ask(POD + "exec?container=echo&stdin=1&command=echo", "GET", headers % secret, user=None)
    assert head.startswith("HTTP/1.1 401 "), head


def test_the_node_ends_it():
    s, _, rest = run("end")
    assert read_all(s, rest) == b"the end"


def test_the_client_ends_it():
    before = len(notes(gone="wait"))
    s, _, _ = run("wait")
    s.close()
    assert within(lambda: len(notes(gone="wait")) > before)


def test_a_slow_reader_stops_the_node():
    s, head, rest = run("flood", small=True)
    assert head.startswith("HTTP/1.1 101 "), head
    sent = settled(lambda: max([n["sent"] for n in notes(name="flood")], default=0))
    assert sent < BIG // 2, f"{sent} bytes went out though nobody read them"
    widen(s)
    data, at = rest, 0
    while True:
        assert data == pattern(at, len(data)), f"wrong bytes after {at}"
        at += len(data)
        if not (data := s.recv(65536)):
            break
    assert at == BIG, at


def test_a_slow_node_stops_the_client():
    s, _, _ = run("deaf")
    s.settimeout(2)
    sent = 0
    try:
        while sent < BIG:
            sent += s.send(pattern(sent, 65536))
    except (TimeoutError, ssl.SSLError):
        pass
    assert sent < BIG // 2, f"{sent} bytes were taken though nobody reads them"


def test_much_goes_in():
    s, _, rest = run("swallow")
    sent = 0
    while sent < BIG:
        s.sendall(pattern(sent, 1 << 20))
        sent += 1 << 20
    send_no_more(s)
    assert read_all(s, rest) == b"%d True" % BIG


def test_what_the_node_refuses_is_passed_on():
    s, head, rest = run("refuse", method="GET")
    assert head.startswith("HTTP/1.1 400 ") and "text/plain" in head, head
    assert b"at least 1 of stdin" in read_some(s, head, rest)


def read_some(s, head, rest):
    n = next(int(line.split(":")[1]) for line in head.split("\r\n") if line.lower().startswith("content-length"))
    while len(rest) < n:
        rest += s.recv(65536)
    return rest


def log(container, query="", **options):
    return ask(POD + "log?container=" + container + query, method="GET", headers="Connection: close\r\n", **options)


def body(s, rest):
    """Of chunks."""
    data, out, at = read_all(s, rest), [], 0
    while (end := data.find(b"\r\n", at)) >= 0:
        n = int(data[at:end], 16)
        out.append(data[end + 2:end + 2 + n])
        at = end + n + 4
        if n == 0:
            return b"".join(out)
    raise AssertionError("no last chunk")


def test_a_log_is_read():
    s, head, rest = log("short", "&tailLines=2&timestamps=1&sinceTime=2020-01-01T00:00:00Z&previous=false")
    assert head.startswith("HTTP/1.1 200 ") and "Content-Type: text/plain\r\n" in head and "chunked" in head, head
    assert body(s, rest) == b"one\ntwo\n"
    assert notes(method="GET")[-1]["target"] == ("/containerLogs/default/p/short?timestamps=true&sinceTime=2020-01-01T00%3A00%3A00Z&"
                                                 "tailLines=2")


def test_logs_in_pieces_and_empty_ones():
    s, _, rest = log("pieces")
    assert body(s, rest) == b"a\nb\nc"
    s, _, rest = log("quiet")
    assert body(s, rest) == b""


def test_a_log_is_followed_until_the_client_goes():
    before = len(notes(gone="follow"))
    s, _, rest = log("follow", "&follow=1")
    while b"first\n" not in rest:
        rest += s.recv(1000)
    s.close()
    assert within(lambda: len(notes(gone="follow")) > before)


def test_a_log_that_is_read_slowly_stops_the_node():
    s, _, rest = log("large", small=True)
    sent = settled(lambda: max([n["sent"] for n in notes(name="large")], default=0))
    assert sent < BIG // 2, sent
    widen(s)
    assert body(s, rest) == pattern(0, BIG)


def test_what_a_node_says_against_a_log():
    for container, status, text in (("waiting", 400, "container is waiting to start"), ("failing", 500, "disk is gone"),
                                    ("rude", 500, "error dialing backend: the answer is no HTTP")):
        s, head, rest = log(container)
        answer = json.loads(read_some(s, head, rest))
        assert (answer["code"], answer["kind"]) == (status, "Status") and text in answer["message"], answer


def test_an_idle_connection_ends():
    s, _, _ = run("wait")
    began = time.monotonic()
    assert read_all(s) == b"" and time.monotonic() - began > 1


def client():
    for name, test in sorted(globals().items()):
        if not name.startswith("test_") or (name == "test_an_idle_connection_ends") != (len(sys.argv) > 4):
            continue
        text = name[5:].replace("_", " ")
        try:
            test()
            print(f"ok {text}", flush=True)
        except Exception as e:  # pylint: disable=broad-except
            print(f"not ok {text}: {e!r}"[:600], flush=True)


def idle(n):
    open_ones = [run("wait")[0] for _ in range(n)]
    print("open", flush=True)
    ended = sum(read_all(s) == b"" for s in open_ones)
    print("ended", ended, flush=True)


if sys.argv[1] == "node":
    Node(*sys.argv[2:6]).serve()
PORT, DIR = int(sys.argv[2]), sys.argv[3]
if sys.argv[1] == "client":
    client()
else:
    idle(int(sys.argv[4]))
