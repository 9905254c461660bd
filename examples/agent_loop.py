"""An agent without a model: a script of what a model would say; each step sees the result of the previous one.

    PYTHONPATH=clients/python python3 examples/agent_loop.py"""
import cordon

TURNS = [  # what a model would write, and what it learns from
    "import statistics\nstatistics.mean(prices)",
    "statistics.mean(price)",                    # a mistake: the error comes back as text
    "[p for p in prices if p > statistics.mean(prices)]",
    "notify(message='3 of 5 above the mean')",
]


@cordon.tool(max_calls=3)
def notify(message: str) -> bool:
    """Tells the user something."""
    print("notify:", message)
    return True


def main():
    with cordon.Session("python", level="strict", tools=[notify]) as s:
        s.execute("prices = p", {"p": [3, 5, 8, 9, 10]}, check=True)
        for turn, code in enumerate(TURNS, 1):
            r = s.execute(code, timeout=5)
            print("turn %d: %s" % (turn, r.text if r.success else r.error))


if __name__ == "__main__":
    main()
