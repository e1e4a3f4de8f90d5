"""What the contract needs and a shell cannot do: servers to talk to, and clients without manners.

  helper.py proxy --to URL --cert F --key F --record FILE   http on 127.0.0.1; passes everything on to kube-apiserver as the
                                                            owner of the certificate; each POST becomes a line of FILE
  helper.py webhook --cert F --key F --record FILE          https on --address; /allow, /deny, /label; each review becomes a line
  helper.py abuse --to HOST:PORT                            random bytes, huge heads, slow and half-closed connections
The servers print `port N` when they listen. Standard library only.
"""

import argparse
import base64
import http.client
import http.server
import json
import os
import random
import socket
import ssl
import sys
import threading
import time
import urllib.parse

BODY_MAX = 8 << 20


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock = threading.Lock()

    def log_message(self, *args):
        pass

    def body(self):
        return self.rfile.read(min(int(self.headers.get("Content-Length") or 0), BODY_MAX))

    def record(self, entry):
        with Handler.lock, open(options.record, "a") as f:
            f.write(json.dumps(entry) + "\n")

    def answer(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Proxy(Handler):
    def pass_on(self):
        to = urllib.parse.urlsplit(options.to)
        context = ssl._create_unverified_context()
        context.load_cert_chain(options.cert, options.key)
        body = self.body()
        if self.command == "POST":
            self.record({"path": self.path, "body": json.loads(body or b"null")})
        there = http.client.HTTPSConnection(to.hostname, to.port, context=context, timeout=700)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "accept-encoding")}
        there.request(self.command, self.path, body or None, headers)
        reply = there.getresponse()
        self.send_response(reply.status)
        for k, v in reply.getheaders():
            if k.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(k, v)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while data := reply.read1(65536):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        there.close()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on


class Webhook(Handler):
    def do_POST(self):
        review = json.loads(self.body())
        request = review["request"]
        self.record({"path": self.path, "body": review})
        response = {"uid": request["uid"], "allowed": not self.path.startswith("/deny")}
        if not response["allowed"]:
            response["status"] = {"message": "not on my watch"}
        if self.path.startswith("/label"):
            patch = [{"op": "add", "path": "/metadata/labels", "value": {"webhook": "was-here"}}]
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
        out = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        self.answer(200, "application/json", json.dumps(out).encode())


def serve(handler, tls):
    server = http.server.ThreadingHTTPServer((options.address, 0), handler)
    server.daemon_threads = True
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.cert, options.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print("port", server.server_address[1], flush=True)
    server.serve_forever()


def dial(tls=True):
    host, port = options.to.rsplit(":", 1)
    sock = socket.create_connection((host, int(port)), timeout=20)
    if not tls:
        return sock
    context = ssl._create_unverified_context()
    context.set_alpn_protocols(["http/1.1"])
    return context.wrap_socket(sock, server_hostname="localhost")


def ignoring_errors(act):
    try:
        act()
    except (OSError, ssl.SSLError):
        pass


def random_bytes(tls):
    def act():
        sock = dial(tls)
        sock.sendall(random.randbytes(random.randrange(1, 20000)))
        sock.settimeout(0.3)
        sock.recv(1000)
        sock.close()

    return act


def huge_head():
    sock = dial()
    sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n")
    for i in range(2000):
        sock.sendall(b"X-%d: %s\r\n" % (i, b"a" * 1000))
    sock.close()


def half_closed():
    sock = dial(tls=False)
    sock.shutdown(socket.SHUT_WR)
    sock.settimeout(1)
    sock.recv(100)
    sock.close()


def abuse():
    """Holds slow connections open while it does everything else, for some seconds."""
    random.seed(os.environ.get("SEED", "1"))
    slow = []
    for _ in range(50):
        ignoring_errors(lambda: slow.append(dial()))
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        for act in (random_bytes(True), random_bytes(False), huge_head, half_closed):
            ignoring_errors(act)
        for sock in slow:
            ignoring_errors(lambda: sock.sendall(b"G"))
    for sock in slow:
        ignoring_errors(sock.close)
    print("abused")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("mode", choices=["proxy", "webhook", "abuse"])
parser.add_argument("--to")
parser.add_argument("--cert")
parser.add_argument("--key")
parser.add_argument("--record", default=os.devnull)
parser.add_argument("--address", default="127.0.0.1")
parser.add_argument("--seconds", type=float, default=5)
options = parser.parse_args()
if options.mode == "proxy":
    serve(Proxy, tls=False)
elif options.mode == "webhook":
    serve(Webhook, tls=True)
else:
    abuse()
