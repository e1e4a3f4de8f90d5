"""Sends the same requests to two API servers, ours and kube-apiserver with our kinds as CustomResourceDefinitions of another group, and
compares the answers. Called by tests/contract/differential; standard library only.

A file of requests is read as tests/http/scenarios are: exchanges with `====` between them, each a note (#), directives
(@capture NAME PATH, @watch LINES), the request, and perhaps an answer after `----`, which is not looked at. ${A} and ${E} are the two
group-versions, ${B}, ${C}, ${T}, ${W} the collections, ${ns} the namespace; a body may be written short:

    sandbox NAME {"spec":{"service":true}}      a small object of that kind (template, claim, pool) merged with the rest, be it a list: one after the other
    bare Sandbox {"spec":{"service":true}}      nothing but apiVersion, kind and that
    lines kind: X\nmetadata:\n                  \n and \t written out

Only here, for families of requests:

    @with NAME VALUE      the exchange is made for each VALUE in the place of ${NAME}; several NAMEs: for each combination. ${#} is the number
                          of the one made, for names that must differ
    @with X,Y VALUE | VALUE    two that go together
    @raw                  the body is base64 of the bytes to send
    @part PATH            only this part of the answer is compared
    @given METHOD PATH BODY    done before, and not compared: what the exchange is about, of its own. PATCH merges, APPLY applies
    @given GET NAME=MEMBER PATH    keeps a part of the answer for ${NAME}

What a PUT, PATCH or DELETE leaves behind is read back and compared as well (as `stored`) unless the answer is that, so that a request that
is refused must leave everything as it was. What differs by nature is normalised (see Side.normal). Output is TAP.
"""

import argparse
import base64
import concurrent.futures
import copy
import datetime
import fnmatch
import functools
import gzip
import http.client
import itertools
import json
import os
import re
import ssl
import sys
import time
import urllib.parse

OURS = "x-k8s.io"  # the end of the groups
HEADERS = ("Allow", "Cache-Control", "Content-Encoding", "Content-Type", "Location", "Retry-After", "Vary", "Warning", "X-Content-Type-Options")
PODS = {"podTemplate": {"spec": {"containers": [{"name": "main", "image": "example.org/app:1"}]}}}
SHORT = {
    "sandbox": ("agents", "Sandbox", PODS),
    "template": ("extensions.agents", "SandboxTemplate", PODS),
    "claim": ("extensions.agents", "SandboxClaim", {"warmPoolRef": {"name": "p"}}),
    "pool": ("extensions.agents", "SandboxWarmPool", {"replicas": 1, "sandboxTemplateRef": {"name": "t"}}),
}
# Requests (FILE: NOTE) whose answers may differ at a path, and why. Kept short.
PROTOBUF = "protobuf is spoken there"
ACCIDENT = "the text names Go types of kube-apiserver's own by accident"
REPEATED = "a dry run of a create repeats the version that it was given there"
VERSION = "an object without a version is an internal error there"
SHOWN = "the Scale that a patch made is shown with its managers, and its members in another order there"
SCALER = "owners of replicas lose who and when there, whoever scales; here it is who scaled"
ALLOWED = [
    ("get: not acceptable", "$.body", PROTOBUF),
    ("get: not acceptable", "$.headers.Content-Type*", PROTOBUF),
    ("list: YAML", "$.body", "a page that is full ends with a token there, though nothing follows"),
    ("scale: too many", "$.body.message", ACCIDENT),
    ("scale: another kind", "$.body.message", ACCIDENT),
    ("scale: unknown field, strict", "$.body.message", ACCIDENT),
    ("scale: parent", "$.body.metadata.managedFields", "an owner of replicas comes twice there; here it is who scaled"),
    ("listing: *resourceVersion=18446744073709551615*", "$.body.message", "shown as the largest that there can be here"),
    ("watches: the way it was done ?${A}/watch?", "$.*", "an internal error there"),
    ("accepting: *protobuf*", "$.*", PROTOBUF),
    ("paths: discovery by kinds of answers ?application/vnd.kubernetes.protobuf*", "$.*", PROTOBUF),
    ("paths: all groups* ?application/vnd.kubernetes.protobuf*", "$.*", PROTOBUF),
    ("paths: schemas*protobuf, application/json*", "$.*", PROTOBUF),
    ("paths: paths ?/api/*", "$.*", "that server has an /api"),
    ("paths: verbs ?PUT, ${W}/none/scale?", "$.body.message", ACCIDENT),
    ("paths: all groups*v2beta1;g=apidiscovery.k8s.io?", "$.*", "not served any more there"),
    ("paths: unchanged ?[*], /apis?", "$.*", "what is there matches, as RFC 9110 has it"),
    ("paths: *, /openapi/v3?", "$.*", "the aggregator's own index, which has no type and is asked for none"),
    ("paths: schemas ?/openapi/v3${A}?hash=x?", "$.*", "a redirect there; an aggregated server must not send its client anywhere"),
    ("paths: discovery by kinds*application/yaml*", "$.body", "a hash of the group is in it"),
    ("fields*: Sandbox spec.volumeClaimTemplates*", "$.headers.Warning", "volumes that nobody mounts are warned of here"),
    ("*", "* order", "members of an object have no order; of metadata alone they come as stored here"),
    ("invalid: *", "$.headers.Warning", "volumes that nobody mounts are warned of here"),
    ("kinds: a claim with everything", "$.headers.Warning", "a claim that will be refused for its pod's metadata is warned of here"),
    ("names: a name ?${repeat:*T | template?", "$.*", "templates have a rule on their names here: a network policy is named after them"),
    ("decoding: a type of body ?application/vnd.kubernetes.protobuf*", "$.*", "read there, and a panic"),
    ("decoding: no object*SandboxList*", "$.body.*", "the rules are asked of what is no Sandbox there, and fail"),
    ("decoding: raw bytes inside ?77u*", "$.body.message", "bytes of the group in hexadecimal, cut"),
    ("decoding: a type of body*a=b; a=c*", "$.*", "a parameter that is named twice is not looked at here"),
    ("decoding: YAML*null: x*", "$.*", "null as a key is the text null here, and refused there"),
    ("meta: what the server sets, given*resourceVersion*", "$.body.metadata.resourceVersion", REPEATED),
    ("options: *dryRun=All*POST*", "$.body.metadata.resourceVersion", REPEATED),
    ("meta: what the server sets, patched*selfLink*", "$.body.metadata.selfLink", "kept by a dry run there"),
    ("jsonpatch: *\"remove\",\"path\":\"/apiVersion\"*", "$.*", VERSION),
    ("jsonpatch: *\"path\":\"/apiVersion\",\"value\":\"\"*", "$.*", VERSION),
    ("mergepatch: *{\"apiVersion\":\"/\"}*", "$.*", VERSION),
    ("jsonpatch: *\"test\",\"path\":\"/metadata/generation\",\"value\":1?0*", "$.*", "numbers are equal by value here (RFC 6902), by digits there"),
    ("applying: one, then another*null*?fieldManager=one]", "$.*", "null gives up what was one's own here, and is stored and refused there"),
    ("deleting: *\"kind\":\"Status\"*", "$.body.message", ACCIDENT),
    ("deleting: *\"kind\":\"CreateOptions\"*", "$.body.message", ACCIDENT),
    ("deleting: *Potential\":true*", "$.*", "for what cannot be read, which is not kept here; what can be is deleted"),
    ("deleting: a type of body*protobuf, *ropagation*", "$.*", "protobuf is not read here, and not tried"),
    ("watch: a list of metadata", "$.*", "the stream begins there and is dropped; here it is refused"),
    ("scaling: put*", "$.body.message", ACCIDENT),
    ("scaling: in a type*", "$.body.message", ACCIDENT),
    ("scaling: of what is not there ?PUT, , *", "$.body.message", ACCIDENT),
    ("kinds: a claim with everything", "$.headers.Warning", "metadata that the reconciler will refuse is warned of here"),
    ("scaling: merged*", "$.body.message", SHOWN),
    ("scaling: merged*", "$.body.details.causes*", SHOWN),
    ("scaling: patched*", "$.body.message", SHOWN),
    ("scaling: patched*", "$.body.details.causes*", SHOWN),
    ("scaling: patched*managedFields*", "$.*", "a Scale that is patched has no managers here"),
    ("scal*: *", "$.stored.metadata.managedFields*", SCALER),
]
WATCH_SECONDS = 1.5  # for events that are all there already
TIME = re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def merged(target, patch):
    """RFC 7386; of a list in the place of an object one after the other."""
    if isinstance(patch, list) and patch and isinstance(patch[0], dict) and isinstance(target, dict):
        return functools.reduce(merged, patch, target)
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = merged(target.get(key), value)
    return target


def written_out(body):
    word, _, rest = body.partition(" ")
    if word == "lines":
        return rest.replace("\\n", "\n").replace("\\t", "\t")
    if word == "bare":
        kind, _, rest = rest.partition(" ")
        group = next(group for group, name, _ in SHORT.values() if name == kind)
        return json.dumps({"apiVersion": f"{group}.{OURS}/v1beta1", "kind": kind} | json.loads(rest or "{}"), separators=(",", ":"))
    if word not in SHORT:
        return body
    name, _, patch = rest.partition(" ")
    group, kind, spec = SHORT[word]
    small = {"apiVersion": f"{group}.{OURS}/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": copy.deepcopy(spec)}
    return json.dumps(merged(small, json.loads(patch or "{}")), separators=(",", ":"))


class Exchange:
    def __init__(self, text):
        self.note, self.capture, self.watch, self.part, self.raw, self.skipped, self.given = "", None, 0, None, False, False, []
        head, _, _ = (text + "\n").partition("\n----\n")
        lines = head.strip("\n").split("\n")
        while lines and (not lines[0] or lines[0][0] in "#@"):
            line = lines.pop(0)
            word, _, rest = line.partition(" ")
            if word == "#":
                self.note = rest
            elif word == "@capture":
                self.capture = rest.split(" ")
            elif word == "@watch":
                self.watch = int(rest)
            elif word == "@part":
                self.part = rest
            elif word == "@given":
                self.given.append(prepared(rest))
            elif word == "@raw":
                self.raw = True
            elif word:
                self.skipped = True  # another user, another time: not possible here
        first, _, self.body = "\n".join(lines).partition("\n\n")
        self.method, _, first = first.partition(" ")
        self.path, *headers = first.split("\n")
        self.headers = [[part.strip() for part in h.split(":", 1)] for h in headers]
        self.body = written_out(self.body.rstrip("\n"))
        self.prefix = re.search(r'"generateName":"([^"]*)"', self.body)


def prepared(line):
    """What @given names."""
    method, path, body = (line.split(" ", 2) + [""])[:3]
    if method == "GET":
        taken = Exchange(f"GET {body}")
        taken.capture = path.split("=")
        return taken
    kind = {"PATCH": "merge-patch+json", "APPLY": "apply-patch+yaml"}.get(method, "json")
    return Exchange(f"{method.replace('APPLY', 'PATCH')} {path}\nContent-Type: application/{kind}\n\n{body}")


def family(text):
    """The exchanges that one with @with stands for."""
    values = {}
    for name, value in re.findall(r"^@with (\S+) ?(.*)\n", text, re.M):
        values.setdefault(name, []).append(value)
    if not values:
        return [text]
    text = re.sub(r"^@with .*\n", "", text, flags=re.M)
    made = []
    for number, chosen in enumerate(itertools.product(*values.values()), 1):
        one = re.sub(r"^(# .*)", lambda m: f"{m[1]} [{', '.join(chosen)}]"[:600], text, count=1, flags=re.M)
        for names, together in zip(values, chosen):
            for name, value in zip(names.split(","), together.split(" | ") if "," in names else [together]):
                one = one.replace(f"${{{name}}}", value)
        made.append(one.replace("${#}", str(number)))
    return made


def exchanges(path):
    with open(path) as f:
        return [Exchange(t) for text in f.read().split("\n====\n") if text.strip() for t in family(text)]


class Side:
    """One of the two servers, with what this run has seen of it."""

    def __init__(self, url, ca, suffix):
        self.suffix = suffix
        self.context = ssl.create_default_context(cafile=ca)
        self.context.load_cert_chain(options.cert, options.key)
        to = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPSConnection(to.hostname, to.port, context=self.context, timeout=30)

    def begin(self, namespace):
        a, e = f"/apis/agents.{OURS}/v1beta1", f"/apis/extensions.agents.{OURS}/v1beta1"
        in_ns = f"/namespaces/{namespace}/"
        self.namespace = namespace
        self.vars = {"ns": namespace, "A": a, "E": e, "B": f"{a}{in_ns}sandboxes", "C": f"{e}{in_ns}sandboxclaims",
                     "T": f"{e}{in_ns}sandboxtemplates", "W": f"{e}{in_ns}sandboxwarmpools"}
        self.uids, self.versions = {}, {}

    def look_at_all(self, namespace, asked):
        self.begin(namespace)
        try:
            return [self.look_at(x) for x in asked]
        finally:
            self.end()

    def end(self):
        """Leaves nothing behind that the next file might list, or that holds up the end of a definition."""
        for collection in "BCTW":
            _, found = self.ask(Exchange(f"GET ${{{collection}}}"))
            for item in (found or {}).get("items", []):
                if item["metadata"].get("finalizers"):
                    patch = "Content-Type: application/merge-patch+json\n\n" + '{"metadata":{"finalizers":null}}'
                    self.ask(Exchange(f"PATCH ${{{collection}}}/{item['metadata']['name']}\n{patch}"))
            self.ask(Exchange(f"DELETE ${{{collection}}}"))

    def filled(self, text):
        text = re.sub(r"\$\{(\w+)\}", lambda m: str(self.vars.get(m[1], m[0])), text)
        text = re.sub(r"\$\{repeat:(.):(\d+)\}", lambda m: m[1] * int(m[2]), text)
        text = text.replace("namespaces/ns/", f"namespaces/{self.namespace}/").replace('"namespace":"ns"', f'"namespace":"{self.namespace}"')
        return text.replace(OURS, self.suffix)

    def ask(self, x):
        """The answer as plain data, still in the words of this side."""
        headers = http.client.HTTPMessage()  # which may have one several times
        headers["User-Agent"], headers["Accept"] = "differential/1", "application/json"
        if x.body:
            headers["Content-Type"] = "application/json"
        for name, _ in x.headers:
            del headers[name]
        for name, value in x.headers:
            if value:
                headers[name] = self.filled(value)
        body = self.filled(x.body).encode("utf-8", "surrogateescape") if x.body else None
        if x.raw:
            body = base64.b64decode(x.body).replace(OURS.encode(), self.suffix.encode())
        try:
            self.connection.request(x.method, urllib.parse.quote(self.filled(x.path), "".join(map(chr, range(33, 127)))), body, headers)
            reply = self.connection.getresponse()
        except (http.client.HTTPException, OSError) as e:
            self.connection.close()
            return {"code": 0, "error": type(e).__name__}, None
        answer = {"code": reply.status, "headers": {h: sorted(reply.headers.get_all(h)) for h in HEADERS if reply.headers.get_all(h)}}
        if "Vary" in answer["headers"]:  # in one line or in several
            answer["headers"]["Vary"] = sorted(", ".join(answer["headers"]["Vary"]).split(", "))
        if x.watch and reply.status == 200:
            data = self.lines(reply, x.watch)
            self.connection.close()
        else:
            data = self.taken(reply, answer)
        answer["body"] = data if not x.part else pick(data, x.part)
        return answer, data

    @staticmethod
    def taken(reply, answer):
        """The body, parsed if it is JSON; notes in the answer what parsing loses."""
        data = reply.read()
        if reply.headers.get("Content-Encoding") == "gzip":
            data = gzip.decompress(data)
        text = data.decode("utf-8", "backslashreplace")
        try:
            parsed = json.loads(text, parse_float=lambda digits: f"<number {digits}>")
        except ValueError:
            return text
        if reply.status < 400:  # some refusals are indented there, by the way they were made
            answer["layout"] = ("indented" if "\n " in text else "compact") + (", end of line" if text.endswith("\n") else "")
        return parsed

    def lines(self, reply, count):
        """As many events, ordinary bookmarks left out: when they come is chance."""
        got, end = [], time.monotonic() + WATCH_SECONDS
        self.connection.sock and self.connection.sock.settimeout(WATCH_SECONDS)
        while len(got) < count and time.monotonic() < end:
            try:
                line = reply.readline()
            except OSError:
                break
            if not line:
                break
            event = json.loads(line)
            if "type" not in event:  # no watch after all
                return event
            marks = event["object"].get("metadata", {}).get("annotations") or event["object"].get("rows")
            if event["type"] != "BOOKMARK" or marks:
                got.append(event)
        return got

    def normal(self, answer):
        text = json.dumps(answer).replace(self.suffix, OURS).replace(self.suffix.encode().hex(), OURS.encode().hex())
        text = text.replace(self.namespace, "<ns>")
        return self.walk(json.loads(text), [])

    def walk(self, v, path):
        key = path[-1] if path else ""
        if isinstance(v, dict):
            return {k: self.walk(w, path + [k]) for k, w in v.items() if not (k == "managedFields" and options.untracked)}
        if isinstance(v, list):
            v = [self.walk(w, path + [str(i)]) for i, w in enumerate(v)]
            # Chance orders these.
            return sorted(v, key=lambda w: json.dumps(w, sort_keys=True)) if key in ("causes", "managedFields", "resources", "Warning") else v
        if not isinstance(v, str):
            return v
        if key == "uid" and re.fullmatch(r"[0-9a-f-]{36}", v):
            # One that is never seen again is not counted, so that one difference makes no others.
            return self.uids.get(v, "<uid>") if self.is_dry else self.uids.setdefault(v, f"<uid-{len(self.uids) + 1}>")
        if key == "storageVersionHash" and len(v) == 12:
            return "<hash of the group>"
        if key == "resourceVersion" and v.isdigit():
            return self.version(v, path)
        if key == "continue" and v:
            return "<continue>"
        if "cells" in path and re.fullmatch(r"\d+s", v):
            return "<age>"
        v = re.sub(r"^( *- )\d+s$", r"\1<age>", v, flags=re.MULTILINE)  # the same in YAML
        for uid, token in self.uids.items():
            v = v.replace(uid, token)
        v = re.sub(r"(record|precondition) \(\d+\)", r"\1 (<rv>)", re.sub(r"current: \d+", "current: <rv>", v))
        v = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uid>", re.sub(r"(resourceVersion\W+)\d+", r"\1<rv>", v))
        v = TIME.sub(lambda m: "<time>" if self.is_now(m[0]) else m[0], v)
        if key == "message" and "body" in path and " is invalid: [" in v:
            head, _, errors = v.partition("[")
            v = head + "[" + ", ".join(sorted(errors.rstrip("]").split(", "))) + "]"
        return v

    def version(self, v, path):
        """Of an object: which of those seen. Of a list, table or bookmark: some number."""
        if path[-3:] != ["body", "metadata", "resourceVersion"] and "items" not in path and "object" not in path or self.is_list:
            if "items" not in path and "rows" not in path:
                return "<any-rv>"
        return self.versions.get(v, "<rv>") if self.is_dry else self.versions.setdefault(v, f"<rv-{len(self.versions) + 1}>")

    @staticmethod
    def is_now(text):
        try:
            at = datetime.datetime.strptime(text.split(".")[0].rstrip("Z"), "%Y-%m-%dT%H:%M:%S")
        except ValueError:  # a day that is not there, out of a message
            return False
        return abs((datetime.datetime.utcnow() - at).total_seconds()) < 3600

    def look_at(self, x):
        if x.given:
            self.uids, self.versions = {}, {}  # this one stands alone
        for step in x.given:
            done, data = self.ask(step)
            if step.capture:
                self.vars[step.capture[0]] = pick(data, step.capture[1])
            if done["code"] >= 300:
                raise SystemExit(f"{x.note}: {step.method} {step.path} before it: {done}")
        answer = self.answer(x)
        left = re.match(r"(\$\{[BCTW]\})(/[^/?]+)?", x.path)
        is_told = answer["code"] < 300 and x.method in ("PUT", "PATCH") and "dryRun" not in x.path and "/scale" not in x.path
        if left and not is_told and x.method in ("PUT", "PATCH", "DELETE") and (left[2] or x.method == "DELETE"):
            answer["stored"] = self.answer(Exchange(f"GET {left[0]}"))["body"]
        return answer

    def answer(self, x):
        answer, data = self.ask(x)
        self.is_dry = "dryRun=All" in x.path
        self.is_list = isinstance(data, dict) and ("items" in data or "rows" in data)
        if isinstance(data, list) and x.watch:
            for event in data:
                if event["type"] == "BOOKMARK":
                    for o in [event["object"]] + [row["object"] for row in event["object"].get("rows", [])]:
                        o.get("metadata", {}).pop("resourceVersion", None)
        if x.capture:
            self.vars[x.capture[0]] = pick(data, x.capture[1])
        answer = self.normal(answer)
        if x.prefix:
            start = re.escape(self.filled(x.prefix[1])[:58])
            generated = re.compile(f"({start})[bcdfghjklmnpqrstvwxz2456789]{{5}}")
            answer = json.loads(generated.sub(r"\1<gen>", json.dumps(answer, ensure_ascii=False)))
        return answer


def pick(data, path):
    for part in path.split("."):
        data = data[int(part)] if isinstance(data, list) else data.get(part) if isinstance(data, dict) else None
    return data


def differences(a, b, path="$"):
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() == b.keys() and list(a) != list(b):
            yield f"{path} order", list(a), list(b)
        for k in sorted(a.keys() | b.keys()):
            yield from differences(a.get(k, "(absent)"), b.get(k, "(absent)"), f"{path}.{k}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (v, w) in enumerate(zip(a, b)):
            yield from differences(v, w, f"{path}[{i}]")
    elif a != b or isinstance(a, bool) != isinstance(b, bool):
        yield path, a, b


USED = set()  # of ALLOWED


def allowed(name, path):
    found = {i for i, (n, p, _) in enumerate(ALLOWED) if fnmatch.fnmatchcase(name, n) and fnmatch.fnmatchcase(path, p)}
    USED.update(found)
    return bool(found)


def short(v, other=None):
    """Of two long texts the part around the first difference."""
    text, against = json.dumps(v, ensure_ascii=False), json.dumps(other, ensure_ascii=False)
    at = max(0, len(os.path.commonprefix([text, against])) - 60) if len(text) > 400 else 0
    return ("... " if at else "") + text[at : at + 400]


def main():
    ours, theirs = Side(options.ours, options.ours_ca, OURS), Side(options.theirs, options.theirs_ca, options.suffix)
    count = bad = 0
    for number, path in enumerate(options.files):
        topic, began = os.path.basename(path).removesuffix(".http"), time.monotonic()
        asked = [x for x in exchanges(path) if not x.skipped]
        with concurrent.futures.ThreadPoolExecutor(2) as both:
            answers = list(both.map(lambda side: side.look_at_all(options.namespaces[number], asked), (ours, theirs)))
        print(f"# {topic}: {len(asked)} pairs, {time.monotonic() - began:.1f} s", flush=True)
        for x, mine, real in zip(asked, *answers):
            count += 1
            name = f"{topic}: {x.note}"
            found = [d for d in differences(mine, real) if not allowed(name, d[0])]
            bad += bool(found)
            print(f"{'not ok' if found else 'ok'} {count} - {name}")
            if found or options.verbose:
                print(f"#   {x.method} {x.path} {x.body[:200]}")
            found.sort(key=lambda d: d[0] not in ("$.code", "$.body.message"))  # which say most
            for where, a, b in found[:8]:
                print(f"#   {where}\n#     ours:           {short(a, b)}\n#     kube-apiserver: {short(b, a)}")
            if options.verbose:
                print(f"#   {short(mine)}")
    if options.all:
        count += 1
        idle = [ALLOWED[i][:2] for i in range(len(ALLOWED)) if i not in USED]
        bad += bool(idle)
        print(f"{'not ok' if idle else 'ok'} {count} - nothing is listed that does not differ", *idle, sep="\n#   ")
    print(f"1..{count}")
    return 1 if bad else 0


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for flag in ("--ours", "--ours-ca", "--theirs", "--theirs-ca", "--cert", "--key"):
    parser.add_argument(flag, required=True)
parser.add_argument("--namespaces", required=True, type=lambda s: s.split(","), help="one for each file")
parser.add_argument("--suffix", default="crd.test", help="the end of their groups, as long as ours, so that cut texts are cut at the same place")
parser.add_argument("--untracked", action="store_true", help="managedFields are not compared")
parser.add_argument("--verbose", action="store_true")
parser.add_argument("--all", action="store_true", help="these are all files: each line of ALLOWED must be of use")
parser.add_argument("files", nargs="+")
options = parser.parse_args()
sys.exit(main())
