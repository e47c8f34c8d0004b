#!/usr/bin/env python3
"""Prints the rows of time_zone_test.cpp, by Python's zoneinfo: what a clock shows, and the offsets
in seconds that it may have then."""
import datetime as dt
import zoneinfo

CLOCKS = [
    ("Europe/Berlin", "1890-01-01 12:00"),
    ("Europe/Berlin", "1945-05-24 12:00"),
    ("Europe/Berlin", "2024-01-15 08:00"),
    ("Europe/Berlin", "2024-03-31 01:59"),
    ("Europe/Berlin", "2024-03-31 02:30"),
    ("Europe/Berlin", "2024-03-31 03:00"),
    ("Europe/Berlin", "2024-10-27 01:59"),
    ("Europe/Berlin", "2024-10-27 02:00"),
    ("Europe/Berlin", "2024-10-27 02:59"),
    ("Europe/Berlin", "2024-10-27 03:00"),
    ("Europe/Berlin", "2075-03-31 02:30"),
    ("Europe/Berlin", "2075-07-01 00:00"),
    ("Europe/Berlin", "2075-10-27 02:30"),
    ("Europe/Berlin", "2075-12-31 23:59"),
    ("Europe/Dublin", "2024-03-31 01:30"),
    ("Europe/Dublin", "2024-10-27 01:30"),
    ("Europe/Dublin", "2060-07-01 00:00"),
    ("America/New_York", "1970-04-26 02:30"),
    ("America/New_York", "2024-11-03 01:30"),
    ("America/New_York", "2050-03-13 02:00"),
    ("America/New_York", "2050-11-06 01:00"),
    ("America/Sao_Paulo", "2018-11-04 00:30"),
    ("America/Sao_Paulo", "2030-01-01 00:00"),
    ("Australia/Lord_Howe", "2024-04-07 01:45"),
    ("Australia/Lord_Howe", "2024-10-06 02:15"),
    ("Australia/Lord_Howe", "2055-01-01 00:00"),
    ("Asia/Kolkata", "2024-06-01 00:00"),
    ("Asia/Tokyo", "1951-05-06 00:30"),
    ("Pacific/Apia", "2011-12-30 12:00"),
    ("Pacific/Apia", "2011-12-31 00:00"),
    ("UTC", "2024-02-29 23:59"),
]
for name, text in CLOCKS:
    zone = zoneinfo.ZoneInfo(name)
    clock = dt.datetime.fromisoformat(text)
    offsets = []
    for fold in (0, 1):
        time = clock.replace(tzinfo=zone, fold=fold)
        back = time.astimezone(dt.timezone.utc).astimezone(zone).replace(tzinfo=None)
        offset = int(time.utcoffset().total_seconds())
        if back == clock and offset not in offsets:
            offsets.append(offset)
    local = int((clock - dt.datetime(1970, 1, 1)).total_seconds())
    shown = ", ".join(str(offset) for offset in offsets)
    print(f'    {{"{name}", {local}, {{{shown}}}}},  // {text}')
