"""Ctrl-C stops a long call, and other threads keep running meanwhile."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from f2_softmax import metrics

# A shell lets jobs of the background ignore the signal, and children inherit that.
LONG = """
import signal
from f2_softmax import metrics
signal.signal(signal.SIGINT, signal.default_int_handler)
texts = [[(t * 31 + i * i) % 500 for i in range(200)] for t in range(400)]
print("begun", flush=True)
try:
    metrics.compute_all(texts, texts, bootstrap=10_000_000)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for a single process")
def test_an_interrupt_stops_a_long_call():
    process = subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.5)
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        assert process.stdout.readline() == "interrupted\n"
        assert process.wait(timeout=20) == 0
    finally:
        process.kill()
    assert time.monotonic() - asked < 15


def test_other_threads_go_on():
    texts = [[(t * 31 + i * i) % 500 for i in range(100)] for t in range(200)]
    worked = threading.Event()
    turns = 0
    scoring = threading.Thread(target=lambda: (metrics.compute_all(texts, texts, bootstrap=200), worked.set()))
    scoring.start()
    while not worked.is_set():
        turns += 1
        time.sleep(0.001)
    scoring.join()
    # If the call kept the lock, the other thread would run only before and after it.
    assert turns > 3
