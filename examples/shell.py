"""A codepod-style script: commands, files, snapshots, forks, and a host command.

    PYTHONPATH=clients/python python3 examples/shell.py"""
from cordon import Extension, Sandbox

shout = Extension("shout", "Upper case.", command=lambda args, stdin: stdin.upper())
with Sandbox(extensions=[shout]) as sb:
    sb.files.write("/home/user/names.txt", "anna\nbert\n")
    print(sb.commands.run("sort -r names.txt | shout").stdout, end="")
    before = sb.snapshot()
    sb.commands.run("rm names.txt")
    child = sb.fork()
    sb.restore(before)
    print(sb.commands.run("wc -l < names.txt").stdout.strip(), child.commands.run("cat names.txt").exit_code)
    child.destroy()
