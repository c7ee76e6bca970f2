"""Gets a path over HTTP/3 with aioquic and prints status, length and SHA-256: http3_client.py IP:PORT CA PATH."""

import asyncio
import hashlib
import sys

from aioquic.asyncio import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated

address, authority, path = sys.argv[1:]
host, port = address.split(":")


class Client(QuicConnectionProtocol):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.http = H3Connection(self._quic)
        self.status, self.body, self.done = None, bytearray(), asyncio.get_running_loop().create_future()

    def get(self):
        fields = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"localhost"), (b":path", path.encode())]
        self.http.send_headers(self._quic.get_next_available_stream_id(), fields, end_stream=True)
        self.transmit()

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated) and not self.done.done():
            self.done.set_exception(ConnectionError(event.reason_phrase or hex(event.error_code)))
        for received in self.http.handle_event(event):
            if isinstance(received, HeadersReceived):
                self.status = dict(received.headers)[b":status"].decode()
            if isinstance(received, DataReceived):
                self.body += received.data
            if received.stream_ended and not self.done.done():
                self.done.set_result(None)


async def main():
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, server_name="localhost")
    configuration.load_verify_locations(authority)
    connection = QuicConnection(configuration=configuration)
    loop = asyncio.get_running_loop()
    transport, client = await loop.create_datagram_endpoint(lambda: Client(connection), local_addr=("127.0.0.1", 0))
    client.connect((host, int(port)))
    await client.wait_connected()
    client.get()
    await client.done
    print(client.status, len(client.body), hashlib.sha256(client.body).hexdigest())
    client.close()
    await client.wait_closed()
    transport.close()


asyncio.run(main())
