#!/usr/bin/env python3
"""Prints the rows of date_format_test.cpp, by Python's strptime: seconds since 1970 and of the
clock's offset."""
import datetime as dt

TEXTS = [
    ("%d.%m.%Y", "31.12.2023"),
    ("%d.%m.%Y", "1.2.2023"),
    ("%m/%d/%Y %I:%M %p", "07/04/2024 12:05 AM"),
    ("%m/%d/%Y %I:%M %p", "7/4/2024 12:05 pm"),
    ("%m/%d/%y", "02/29/68"),
    ("%m/%d/%y", "02/28/69"),
    ("%Y%m%d%H%M%S", "20240229235959"),
    ("%d %b %Y", "05 Mar 1999"),
    ("%A, %B %d, %Y", "Thursday, February 29, 2024"),
    ("%Y-%j", "2024-366"),
    ("%d/%b/%Y:%H:%M:%S %z", "10/Oct/2000:13:55:36 -0700"),
    ("%Y-%m-%dT%H:%M:%S.%f%z", "1950-01-02T03:04:05.250+05:30"),
    ("%Y-%m", "1969-11"),
    ("%Y", "1900"),
    ("100%% %Y", "100% 2000"),
]
for form, text in TEXTS:
    time = dt.datetime.strptime(text, form)
    offset = time.utcoffset()
    ahead = offset.total_seconds() if offset is not None else 0
    seconds = (time.replace(tzinfo=None) - dt.datetime(1970, 1, 1)).total_seconds() - ahead
    print(f'    {{"{form}", "{text}", {seconds!r}, {ahead!r}}},')
