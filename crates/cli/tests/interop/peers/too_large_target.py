"""A UDP target whose answers do not fit the tunnel. Prints the path MTU that the kernel learns from the proxy's ICMP message."""

import socket
import sys
import time

IP_MTU_DISCOVER, IP_PMTUDISC_DO, IP_MTU = 10, 2, 14

own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
own.bind((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
own.settimeout(60)
_, peer = own.recvfrom(2000)
own.connect(peer)
deadline = time.monotonic() + 30
while own.getsockopt(socket.IPPROTO_IP, IP_MTU) == 1500 and time.monotonic() < deadline:
    own.send(bytes(1300))
    time.sleep(0.05)
print(own.getsockopt(socket.IPPROTO_IP, IP_MTU), flush=True)
