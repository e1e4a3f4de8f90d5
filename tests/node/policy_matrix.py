#!/usr/bin/env python3
"""Tries packets between Pods and compares them with what NetworkPolicies say.

  serve ADDRESS...          answers on the ports below until it is ended; prints a line when it is ready
  hold ADDRESS PORT FILE    one connection over which a byte goes there and back again and again; FILE has how often
  compare                   {policies, pods, namespaces, places, outside, machine} from stdin (lists as the API has them;
                            places: NAMESPACE/NAME to {netns, ip}); tries every cell from every place, prints each
                            that differs, and at the end how many were allowed and denied

What is expected comes from the definition of a NetworkPolicy, cell by cell, and shares nothing with the node's rules.
"""
import ctypes
import ipaddress
import json
import os
import select
import socket
import sys
import time

TCP = [80, 81, 90, 95, 8080]
UDP = [54, 80]  # not 53, where the machine answers about names
LARGE = "x" * 3000  # bytes of a datagram that comes in fragments
PATIENCE_S = 1.2  # of a cell; denied packets are dropped, so nothing tells of it


# ---- packets ----

def serve(addresses):
    poll, by_fd = select.poll(), {}

    def watch(s):
        s.setblocking(False)
        by_fd[s.fileno()] = s
        poll.register(s, select.POLLIN)

    for address in addresses:
        for port in TCP:
            watch(socket.create_server((address, port), backlog=200))
        for port in UDP:
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.bind((address, port))
            watch(s)
    print("ready", flush=True)
    while True:
        for fd, _ in poll.poll():
            s = by_fd[fd]
            try:
                answer(s, watch)
            except OSError:
                pass
            if s.fileno() < 0:
                poll.unregister(fd)


def answer(s, watch):
    if s.type == socket.SOCK_DGRAM:
        data, peer = s.recvfrom(65536)
        s.sendto(data[:1], peer)
    elif s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        watch(s.accept()[0])
    else:
        data = s.recv(65536)
        if data:
            s.send(data)
        else:
            s.close()


def begin(cell):
    protocol, address, port = cell
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM)
    s.setblocking(False)
    s.connect_ex((address, int(port)))
    return s


def payload(cell):
    return (LARGE if cell[0] == "large" else "x").encode()


def ask(cells):
    """All at once; 1 or 0 for each."""
    sockets = {}
    for i, cell in enumerate(cells):
        s = begin(cell)
        sockets[s.fileno()] = (s, i)
        if cell[0] != "tcp":
            try:
                s.send(payload(cell))
            except OSError:
                pass
    done, sent = [0] * len(cells), set()
    end = time.monotonic() + PATIENCE_S
    poll = select.poll()
    for fd, (s, i) in sockets.items():
        poll.register(fd, select.POLLOUT if cells[i][0] == "tcp" else select.POLLIN)
    while sockets and time.monotonic() < end:
        for fd, what in poll.poll(max(0, (end - time.monotonic()) * 1000)):
            s, i = sockets[fd]
            try:
                if what & select.POLLOUT and fd not in sent:
                    s.send(b"x")
                    sent.add(fd)
                    poll.modify(fd, select.POLLIN)
                    continue
                done[i] = 1 if s.recv(16) else 0
            except OSError:
                pass
            poll.unregister(fd)
            del sockets[fd]
    return done


def ask_from(netns, cells):
    """The same in a process of its own, in that network namespace; what it answers comes out of the file returned."""
    out, into = os.pipe()
    if os.fork():
        os.close(into)
        return os.fdopen(out)
    if netns:
        with open(netns, encoding="ascii") as f:
            if ctypes.CDLL(None, use_errno=True).setns(f.fileno(), 0x40000000):
                os._exit(1)
    with os.fdopen(into, "w") as f:
        f.write(" ".join(map(str, ask(cells))))
    os._exit(0)


def hold(address, port, path):
    s = socket.create_connection((address, int(port)))
    n = 0
    while True:
        s.sendall(b"x")
        if not s.recv(1):
            return
        n += 1
        with open(path, "w", encoding="ascii") as f:
            f.write(f"{n}\n")
        time.sleep(0.05)


# ---- what a policy means ----

def match(selector, labels):
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for e in selector.get("matchExpressions") or []:
        has, values = e["key"] in labels, e.get("values") or []
        holds = {"In": has and labels.get(e["key"]) in values, "NotIn": not has or labels[e["key"]] not in values,
                 "Exists": has, "DoesNotExist": not has}[e["operator"]]
        if not holds:
            return False
    return True


class World:
    def __init__(self, state):
        self.policies = state["policies"]
        self.spaces = {n["metadata"]["name"]: n["metadata"].get("labels", {}) for n in state["namespaces"]}
        self.pods = {}
        for pod in state["pods"]:
            key = pod["metadata"]["namespace"] + "/" + pod["metadata"]["name"]
            if key in state["places"]:
                self.pods[key] = {
                    "space": pod["metadata"]["namespace"], "labels": pod["metadata"].get("labels", {}),
                    "ip": state["places"][key]["ip"],
                    "names": {(p["name"], p.get("protocol", "TCP")): p["containerPort"]
                              for c in pod["spec"]["containers"] for p in c.get("ports", []) if "name" in p}}

    def is_peer(self, peer, policy, ip, pod):
        if "ipBlock" in peer:
            inside = lambda cidr: ipaddress.ip_address(ip) in ipaddress.ip_network(cidr)
            return inside(peer["ipBlock"]["cidr"]) and not any(map(inside, peer["ipBlock"].get("except", [])))
        if not pod:
            return False
        if "namespaceSelector" in peer:
            if not match(peer["namespaceSelector"], self.spaces[pod["space"]]):
                return False
        elif pod["space"] != policy["metadata"]["namespace"]:
            return False
        return match(peer.get("podSelector", {}), pod["labels"])

    @staticmethod
    def is_port(entry, protocol, number, target):
        if entry.get("protocol", "TCP") != protocol:
            return False
        port = entry.get("port")
        if port is None:
            return True
        if isinstance(port, str):
            return bool(target) and target["names"].get((port, protocol)) == number
        return port <= number <= entry.get("endPort", port)

    def lets(self, pod, direction, ip, peer, protocol, number, target):
        """Whether a Pod's policies let a connection pass in one of its directions."""
        rules_of, peers_of = ("ingress", "from") if direction == "Ingress" else ("egress", "to")
        is_isolated = False
        for policy in self.policies:
            spec = policy["spec"]
            types = spec.get("policyTypes") or ["Ingress"] + (["Egress"] if spec.get("egress") else [])
            if policy["metadata"]["namespace"] != pod["space"] or direction not in types:
                continue
            if not match(spec.get("podSelector", {}), pod["labels"]):
                continue
            is_isolated = True
            for rule in spec.get(rules_of) or []:
                peers, ports = rule.get(peers_of) or [], rule.get("ports") or []
                if peers and not any(self.is_peer(p, policy, ip, peer) for p in peers):
                    continue
                if not ports or any(self.is_port(p, protocol, number, target) for p in ports):
                    return True
        return not is_isolated

    def allows(self, source, source_ip, target, target_ip, protocol, number):
        """source and target are keys of Pods, or None."""
        a, b = self.pods.get(source), self.pods.get(target)
        if source is not None and source == target:
            return True
        if a and not self.lets(a, "Egress", target_ip, b, protocol, number, b):
            return False
        # What comes from the machine always reaches its Pods.
        return not b or source == "machine" or self.lets(b, "Ingress", source_ip, a, protocol, number, b)


def compare():
    state = json.load(sys.stdin)
    world, places = World(state), state["places"]
    sources = {key: places[key] for key in places}
    sources["machine"] = {"netns": None, "ip": state["machine"]}
    sources["outside"] = {"netns": state["outside"]["netns"], "ip": state["outside"]["ips"][0]}
    targets = {key: place["ip"] for key, place in places.items()}
    beyond = {"machine": state["machine"]}
    beyond.update({f"outside {ip}": ip for ip in state["outside"]["ips"]})
    ports = [("tcp", p) for p in TCP] + [("udp", p) for p in UDP] + [("large", UDP[0])]
    running = []
    for source, place in sources.items():
        reach = dict(targets, **(beyond if source in places else {}))
        cells = [(target, ip, protocol, port) for target, ip in reach.items() for protocol, port in ports]
        running.append((source, place, cells, ask_from(place["netns"], [(protocol, ip, port) for _, ip, protocol, port in cells])))
    counts, wrong = [0, 0], 0
    for source, place, cells, said in running:
        answers = said.read().split()
        for (target, ip, protocol, port), answered in zip(cells, answers, strict=True):
            name = "TCP" if protocol == "tcp" else "UDP"
            expected = world.allows(source, place["ip"], target, ip, name, port)
            counts[expected] += 1
            if expected != (answered == "1"):
                wrong += 1
                print(f"{source} -> {target} {protocol} {port}: {'blocked' if expected else 'passed'}")
    print(f"{counts[1]} allowed, {counts[0]} denied")
    return 1 if wrong else 0


if __name__ == "__main__":
    command, arguments = sys.argv[1], sys.argv[2:]
    sys.exit({"serve": lambda: serve(arguments), "hold": lambda: hold(*arguments), "compare": compare}[command]())
