"""Receives OTLP over HTTP and writes each span as a line of JSON. Refuses what OpenTelemetry's classes cannot decode."""

import gzip
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

lock = threading.Lock()
out = open(sys.argv[1], "a", encoding="utf-8")


def attributes(pairs):
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


def lines(request):
    for of_resource in request.resource_spans:
        resource = attributes(of_resource.resource.attributes)
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                if len(span.trace_id) != 16 or len(span.span_id) != 8 or len(span.parent_span_id) not in (0, 8):
                    raise ValueError("an id has the wrong length")
                if span.end_time_unix_nano < span.start_time_unix_nano:
                    raise ValueError("a span ends before it starts")
                yield {
                    "resource": resource,
                    "scope": of_scope.scope.name,
                    "trace": span.trace_id.hex(),
                    "span": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "name": span.name,
                    "kind": Span.SpanKind.Name(span.kind),
                    "start": span.start_time_unix_nano,
                    "end": span.end_time_unix_nano,
                    "attributes": attributes(span.attributes),
                    "failed": span.status.code == 2,
                }


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            if self.path != "/v1/traces" or self.headers["content-type"] != "application/x-protobuf":
                raise ValueError(f"{self.path} with {self.headers['content-type']}")
            if self.headers["content-encoding"] == "gzip":
                body = gzip.decompress(body)
            spans = [json.dumps(line) for line in lines(ExportTraceServiceRequest.FromString(body))]
        except Exception as error:
            print(f"refused: {error}", file=sys.stderr, flush=True)
            self.answer(400, b"")
            return
        with lock:
            out.write("".join(span + "\n" for span in spans))
            out.flush()
        self.answer(200, ExportTraceServiceResponse().SerializeToString())

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
