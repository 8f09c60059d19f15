"""Schedules of collectives, as `lockstep collective --json` writes them: who sends which chunks to
whom. Times are nanoseconds; without times a message lasts from its step to the next."""

from dataclasses import dataclass

COLUMNS = ("step", "from", "to", "first", "chunks", "bytes", "adds", "start_ns", "end_ns")


@dataclass(frozen=True)
class Message:
    step: int
    sender: int
    receiver: int
    first: int  # chunk
    chunks: int  # behind the last one comes the first again
    bytes: int
    adds: bool
    start: float
    end: float


@dataclass(frozen=True)
class Schedule:
    collective: str
    algorithm: str
    ranks: int
    root: int | None
    per_host: int
    bytes: int
    steps: int
    chunks: int
    timed: bool
    time: float
    messages: tuple
    file: str

    @property
    def most_sent(self):
        sums = [0] * self.ranks
        for message in self.messages:
            sums[message.sender] += message.bytes
        return max(sums)

    def label(self, message):
        """As in the command's table: "2", "2-5", "0>2"."""
        if self.collective == "all_to_all":
            return f"{message.first // self.ranks}>{message.first % self.ranks}"
        last = (message.first + message.chunks - 1) % self.chunks
        return str(message.first) if message.chunks == 1 else f"{message.first}\u2013{last}"


def read_schedule(node):
    ranks, timed = node.count("ranks"), node.has("time_ns")
    chunks = len(node.items("chunks"))
    table = node.at("messages")
    columns = tuple(column.value for column in table.items("columns"))
    if columns != COLUMNS:
        raise table.at("columns").error("names other columns", "one of " + ", ".join(COLUMNS))
    messages = tuple(_message(row, ranks, chunks, timed) for row in table.items("rows"))
    return Schedule(
        collective=node.text("collective"), algorithm=node.text("algorithm"), ranks=ranks,
        root=node.count("root", low=0) if node.has("root") else None,
        per_host=node.count("per_host"), bytes=node.count("bytes", low=0),
        steps=node.count("steps", low=0), chunks=chunks, timed=timed,
        time=node.number("time_ns", low=0) if timed else 0.0, messages=messages,
        file=str(node.file))


def _message(row, ranks, chunks, timed):
    values = row.value
    whole = isinstance(values, list) and len(values) == len(COLUMNS) and all(
        isinstance(v, (bool, int)) and 0 <= v < 2**60 for v in values)
    if not whole:
        raise row.error(f"is not {len(COLUMNS)} whole numbers", "was the file written by lockstep?")
    message = Message(*values)
    if max(message.sender, message.receiver) >= ranks:
        raise row.error("names a rank that is not there", f"the last is {ranks - 1}")
    if message.first >= chunks or not 0 < message.chunks <= chunks:
        raise row.error("names a chunk that is not there", f"there are {chunks}")
    if message.end < message.start:
        raise row.error("ends before it starts", "was the file written by lockstep?")
    if timed:
        return message
    # An arrow that crosses most of its step; what is left parts it from the next.
    start = message.step + 1
    return Message(*values[:7], start, start + 0.8)
