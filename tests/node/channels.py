#!/usr/bin/env python3
"""A client of a node's exec, attach and port-forward over websockets, made here to be able to do what
clients should not. Needs nothing but Python.

channels.py BASE command PATH [flags]   streams to files, the outcome as the last line
channels.py BASE ports PATH [flags]     what is sent to a port must come back
BASE is host:port:cert:key.
"""
import argparse, base64, hashlib, json, os, select, socket, ssl, struct, sys, threading, time

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Gone(Exception):
    pass


class Channels:
    def __init__(self, base, path, protocol):
        host, port, cert, key = base.split(":")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.load_cert_chain(cert, key)
        self.sock = context.wrap_socket(socket.create_connection((host, int(port)), 60))
        self.sock.setblocking(False)
        self.tls = threading.Lock()  # one thread reads while another sends, and OpenSSL takes one at a time
        nonce = base64.b64encode(os.urandom(16))
        head = [f"GET {path} HTTP/1.1", "Host: node", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                f"Sec-WebSocket-Key: {nonce.decode()}"]
        if protocol:
            head.append(f"Sec-WebSocket-Protocol: {protocol}")
        self.all(("\r\n".join(head) + "\r\n\r\n").encode())
        self.buffer = b""
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.some()
        answer, _, self.buffer = answer.partition(b"\r\n\r\n")
        if b" 101 " not in answer.split(b"\r\n")[0]:
            length = int([l for l in answer.split(b"\r\n") if l.lower().startswith(b"content-length")][0].split(b":")[1])
            while len(self.buffer) < length:
                self.buffer += self.some()
            raise SystemExit(f"{answer.split()[1].decode()} {self.buffer.decode()}")
        assert base64.b64encode(hashlib.sha1(nonce + GUID).digest()) in answer
        self.lock = threading.Lock()

    def step(self, call, argument):
        """The call's result; it is tried again when the socket has bytes, or room for them."""
        while True:
            try:
                with self.tls:
                    return call(argument)
            except ssl.SSLWantReadError:
                ready = select.select([self.sock], [], [], 120)
            except ssl.SSLWantWriteError:
                ready = select.select([], [self.sock], [], 120)
            if not any(ready):
                raise Gone()

    def some(self):
        got = self.step(self.sock.recv, 1 << 18)
        if not got:
            raise Gone()
        return got

    def all(self, data):
        data = memoryview(data)
        while data:
            data = data[self.step(self.sock.send, data[:16384]):]

    def exactly(self, n):
        parts, have = [self.buffer], len(self.buffer)
        while have < n:
            parts.append(self.some())
            have += len(parts[-1])
        all_of_it = b"".join(parts)
        self.buffer = all_of_it[n:]
        return all_of_it[:n]

    def send(self, opcode, data, last=True):
        mask = os.urandom(4)
        n = len(data)
        head = bytes([opcode | (0x80 if last else 0)])
        head += bytes([0x80 | n]) if n < 126 else b"\xfe" + struct.pack(">H", n) if n < 65536 else b"\xff" + struct.pack(">Q", n)
        key = int.from_bytes((mask * (n // 4 + 1))[:n], "big")
        masked = (int.from_bytes(data, "big") ^ key).to_bytes(n, "big")
        with self.lock:
            self.all(head + mask + masked)

    def put(self, channel, data):
        self.send(2, bytes([channel]) + data)

    def frame(self):
        a, b = self.exactly(2)
        n = b & 0x7F
        if n == 126:
            n = struct.unpack(">H", self.exactly(2))[0]
        elif n == 127:
            n = struct.unpack(">Q", self.exactly(8))[0]
        return a & 0x0F, self.exactly(n)


def command(args):
    c = Channels(args.base, args.path, args.protocol)
    out = open(args.out, "wb") if args.out else sys.stdout.buffer
    status, code, got = b"", None, 0

    def feed():
        try:
            for size in args.resize.split(",") if args.resize else []:
                width, height = size.split("x")
                c.put(4, json.dumps({"Width": int(width), "Height": int(height)}).encode())
                time.sleep(args.pause)
            if args.input:
                with open(args.input, "rb") as f:
                    while piece := f.read(32000):
                        c.put(0, piece)
            for line in args.lines or []:
                c.put(0, line.encode().decode("unicode_escape").encode("latin-1"))
                time.sleep(args.pause)
            if args.close:
                c.send(2, b"\xff\x00")
        except OSError:
            pass

    threading.Thread(target=feed, daemon=True).start()
    try:
        while True:
            opcode, data = c.frame()
            if opcode == 8:
                code = struct.unpack(">H", data[:2])[0]
                c.send(8, data)
                break
            if opcode != 2 or not data:
                continue
            if data[0] == 1:
                out.write(data[1:])
                out.flush()
                got += len(data) - 1
            elif data[0] == 2:
                sys.stderr.buffer.write(data[1:])
                sys.stderr.flush()
            elif data[0] == 3:
                status += data[1:]
            if args.go_after is not None and got >= args.go_after:
                c.sock.close()
                return
    except (Gone, OSError):
        pass
    out.flush()
    print(f"{code} {status.decode()}")


def echo(c, channel, data):
    """Sends data in pieces."""
    for at in range(0, len(data), 20000):
        c.put(channel, data[at:at + 20000])


def ports(args):
    c = Channels(args.base, args.path, args.protocol)
    count = args.count
    sent = [os.urandom(args.bytes) for _ in range(count)]
    got, errors, greeted = [b""] * count, [b""] * count, [0] * (2 * count)
    for i in range(count):
        threading.Thread(target=echo, args=(c, 2 * i, sent[i]), daemon=True).start()
    try:
        while any(len(got[i]) < args.bytes and not errors[i] for i in range(count)):
            opcode, data = c.frame()
            if opcode == 8:
                break
            channel = data[0]
            if greeted[channel] < 2:
                greeted[channel] += len(data) - 1
            elif channel % 2 == 0:
                got[channel // 2] += data[1:]
            else:
                errors[channel // 2] += data[1:]
    except (Gone, OSError):
        pass
    if args.go_after is not None:
        c.sock.close()
    for i in range(count):
        print("same" if got[i] == sent[i] else errors[i].decode() or f"differs: {len(got[i])} of {len(sent[i])}")


parser = argparse.ArgumentParser()
parser.add_argument("base")
parser.add_argument("what", choices=["command", "ports"])
parser.add_argument("path")
parser.add_argument("--protocol", default="v5.channel.k8s.io")
parser.add_argument("--input", help="a file for stdin")
parser.add_argument("--lines", nargs="*", help="for stdin, with escapes, --pause between them")
parser.add_argument("--pause", type=float, default=0.3)
parser.add_argument("--close", action="store_true", help="end stdin")
parser.add_argument("--out", help="a file for stdout")
parser.add_argument("--resize", help="80x24,...")
parser.add_argument("--go-after", type=int, help="leave without a word after so many bytes")
parser.add_argument("--count", type=int, default=1)
parser.add_argument("--bytes", type=int, default=1 << 20)
arguments = parser.parse_args()
{"command": command, "ports": ports}[arguments.what](arguments)
