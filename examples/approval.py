"""A tool that waits for a person's decision; the code's clock stops meanwhile.

    PYTHONPATH=clients/python python3 examples/approval.py"""
import cordon


@cordon.tool(approval=True)
def transfer(amount: int, to: str) -> str:
    """Transfers money."""
    return "transferred %d to %s" % (amount, to)


def decide(a):
    return True if a.detail["amount"] <= 100 else "more than 100 needs a person"


with cordon.Session("python", tools=[transfer], on_approval=decide) as s:
    print(s.run("transfer(amount=50, to='anna')"))
    print(s.execute("transfer(amount=5000, to='mallory')").error)
