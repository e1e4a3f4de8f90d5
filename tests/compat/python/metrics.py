"""A metrics server for tests: external.metrics.k8s.io/v1beta1, of which each metric has the value that stands in a file.

    metrics.py PORT CERTIFICATE KEY FILE
"""
import http.server
import json
import ssl
import sys
import time

GROUP = "external.metrics.k8s.io"
PORT, CERTIFICATE, KEY, FILE = sys.argv[1:]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, code, body):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        path = self.path.split("?")[0].strip("/").split("/")
        if path == ["apis", GROUP, "v1beta1"]:
            resource = {"name": "waiting", "singularName": "", "namespaced": True, "kind": "ExternalMetricValueList", "verbs": ["get"]}
            self.answer(200, {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP + "/v1beta1", "resources": [resource]})
        elif path[:4] == ["apis", GROUP, "v1beta1", "namespaces"] and len(path) == 6:
            with open(FILE) as file:
                value = file.read().strip()
            item = {"metricName": path[5], "metricLabels": {}, "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "value": value}
            self.answer(200, {"kind": "ExternalMetricValueList", "apiVersion": GROUP + "/v1beta1", "metadata": {}, "items": [item]})
        else:
            self.answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(PORT)), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE, KEY)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
