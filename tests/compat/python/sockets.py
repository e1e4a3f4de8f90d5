"""A watch over a websocket, as Java's clients have it, with websocket-client.

    sockets.py NAMESPACE     KUBECONFIG says which cluster
"""
import json
import ssl
import sys

import websocket
from kubernetes import client, config

from tap import check, same

NAMESPACE = sys.argv[1]
PATH = "/apis/agents.x-k8s.io/v1beta1/namespaces/%s/sandboxes" % NAMESPACE
WHERE = ("agents.x-k8s.io", "v1beta1", NAMESPACE, "sandboxes")


def sandbox(name):
    return {
        "apiVersion": "agents.x-k8s.io/v1beta1",
        "kind": "Sandbox",
        "metadata": {"name": name},
        "spec": {"operatingMode": "Suspended", "podTemplate": {"spec": {"containers": [{"name": "main", "image": "a"}]}}},
    }


def connect(settings, query):
    tls = {"ca_certs": settings.ssl_ca_cert, "certfile": settings.cert_file, "keyfile": settings.key_file, "cert_reqs": ssl.CERT_REQUIRED}
    url = settings.host.replace("https://", "wss://", 1) + PATH + "?watch=true&" + query
    return websocket.create_connection(url, sslopt=tls, timeout=60)


def event(socket):
    """The next one of an object with a name; a bookmark has none."""
    while True:
        opcode, data = socket.recv_data(control_frame=True)
        if opcode != websocket.ABNF.OPCODE_TEXT:
            return opcode, data
        told = json.loads(data)
        if told["type"] != "BOOKMARK":
            return told["type"], told["object"]["metadata"]["name"]


def until(socket, wanted):
    """Looks at what comes until that comes, and returns it, or the end."""
    while True:
        got = event(socket)
        if got == wanted or got[0] == websocket.ABNF.OPCODE_CLOSE:
            return got


def main():
    config.load_kube_config()
    api = client.CustomObjectsApi()
    settings = api.api_client.configuration
    api.create_namespaced_custom_object(*WHERE, sandbox("before"))
    socket = connect(settings, "allowWatchBookmarks=true&timeoutSeconds=600")
    same("a watch over a websocket shows what is there", ("ADDED", "before"), until(socket, ("ADDED", "before")))
    api.create_namespaced_custom_object(*WHERE, sandbox("later"))
    same("and what comes", ("ADDED", "later"), until(socket, ("ADDED", "later")))
    socket.ping("still there?")
    pong = (websocket.ABNF.OPCODE_PONG, b"still there?")
    same("pings are answered", pong, until(socket, pong))
    for name in ("before", "later"):
        api.delete_namespaced_custom_object(*WHERE, name)
        same("the end of " + name, ("DELETED", name), until(socket, ("DELETED", name)))
    socket.close()
    socket = connect(settings, "timeoutSeconds=1")
    same("its time-out is a close in order", (websocket.ABNF.OPCODE_CLOSE, b"\x03\xe8"), until(socket, None))
    try:
        connect(settings, "labelSelector=%3D%3D")
        check("a watch that is refused is no websocket", False)
    except websocket.WebSocketBadStatusException as error:
        same("a watch that is refused is no websocket", 400, error.status_code)


main()
