"""A cable between two network namespaces: a tun device in each, and a program that carries packets from one to the other.

    relay.py ADDRESS_A PID_A ADDRESS_B PID_B

in the namespaces of these two processes. Commands are lines of its input, each answered by "ok": "delay SECONDS", "loss SHARE",
"cut", "mend". It ends with its input."""
import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
LARGEST = 65536


def device_in(namespace, address, peer):
    """A tun device with this address in that namespace, which this process enters and leaves."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/proc/{namespace}/ns/net", os.O_RDONLY)
    if libc.setns(there, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", b"cable", IFF_TUN | IFF_NO_PI))
    for words in (f"link set lo up", f"link set cable mtu 9000 up", f"address add {address} peer {peer} dev cable"):
        subprocess.run(["ip", *words.split()], check=True)
    libc.setns(home, CLONE_NEWNET)
    os.close(home)
    os.close(there)
    return device


def main():
    a, pid_a, b, pid_b = sys.argv[1:]
    devices = [device_in(pid_a, a, b), device_in(pid_b, b, a)]
    delay, loss, is_cut, count = 0.0, 0.0, False, 0
    waiting = []  # (time, order, device, packet)
    dice = random.Random(4)
    os.set_blocking(0, False)
    print("ok", flush=True)
    while True:
        timeout = max(waiting[0][0] - time.monotonic(), 0) if waiting else None
        ready, _, _ = select.select([*devices, 0], [], [], timeout)
        now = time.monotonic()
        for place, device in enumerate(devices):
            if device not in ready:
                continue
            for _ in range(64):
                try:
                    packet = os.read(device, LARGEST)
                except BlockingIOError:
                    break
                if not is_cut and dice.random() >= loss:
                    count += 1
                    heapq.heappush(waiting, (now + delay, count, devices[1 - place], packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, device, packet = heapq.heappop(waiting)
            try:
                if not is_cut:
                    os.write(device, packet)
            except OSError:
                pass  # its queue is full: lost
        if 0 in ready:
            text = os.read(0, 4096).decode()
            if not text:
                return
            for line in text.splitlines():
                word, _, value = line.partition(" ")
                delay = float(value) if word == "delay" else delay
                loss = float(value) if word == "loss" else loss
                is_cut = word == "cut" or (is_cut and word != "mend")
                print("ok", flush=True)


main()
