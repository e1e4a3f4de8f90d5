"""The page's terminal in a headless Chromium, into the container of a Sandbox that runs: for tests/node/terminal.sh.

    python3 tests/ui/terminal.py ADDRESS-FILE SPKI SANDBOX TOKEN-OF-A-VIEWER
"""
import re, sys

from browser import Browser
from server import Tap

ADDRESS_FILE, SPKI, SANDBOX, VIEWER = sys.argv[1:]
STATE = "document.getElementById('terminal-state').textContent"
LINES = "[...document.querySelectorAll('#terminal-body .line')].map((l) => l.textContent.trimEnd())"
tap = Tap()
with open(ADDRESS_FILE) as file:
    address = file.read().strip()
browser = Browser("chromium", SPKI)


def becomes(expression, words):
    """What follows builds on it."""
    value = browser.until(expression)
    tap.ok(value, words, None if value else "\n".join([str(browser.run(STATE)), *[line for line in browser.run(LINES) if line][-20:]]))
    if not value:
        tap.end()


def at_prompt():
    """The shell has asked the terminal where its cursor is, and reads."""
    browser.until(f"{LINES}.filter((l) => l).at(-1) === '/ #'")


def enter(text):
    browser.type(text)
    browser.key("Enter")


def click(selector, label):
    """Once it is there."""
    button = f"[...document.querySelectorAll({selector!r})].find((b) => b.textContent === {label!r})"
    browser.until(f"{button} !== undefined")
    browser.run(f"{button}.click()")


def open_terminal():
    click("#sandboxes td button", SANDBOX)
    click("#detail .actions button", "Terminal")


try:
    browser.go(address)
    becomes(f"[...document.querySelectorAll('#sandboxes tbody tr')].some((r) => r.textContent.includes('{SANDBOX}') && r.textContent.includes('Ready'))", "the Sandbox is in the page")
    open_terminal()
    becomes(f"{STATE} === 'Connected'", "a terminal opens into it")
    at_prompt()
    enter("echo it is $((6 * 7)) in $(hostname)")
    becomes(f"{LINES}.some((l) => l === 'it is 42 in {SANDBOX}')", "a command runs there, and what it prints is seen")
    size = browser.run("[...document.querySelectorAll('#terminal-body > div:last-of-type .line')].length")
    at_prompt()
    enter("stty size")
    becomes(f"{LINES}.some((l) => /^{size} [0-9]+$/.test(l))", "it knows how large its terminal is")
    browser.resize(900, 600)
    other = browser.until(f"(() => {{ const n = document.querySelectorAll('#terminal-body > div:last-of-type .line').length; return n !== {size} && n; }})()")
    at_prompt()
    enter("clear; stty size")
    becomes(f"{LINES}.some((l) => /^{other} [0-9]+$/.test(l))", "and is told when that changes")
    at_prompt()
    enter("printf '\\033[31;1m%s\\033[m\\n' red; cat")
    becomes("[...document.querySelectorAll('#terminal-body span.bold.f1')].some((s) => s.textContent === 'red')", "colours are seen")
    enter("typed to cat")
    becomes(f"{LINES}.filter((l) => l === 'typed to cat').length === 2", "what is typed is sent")
    browser.key("c", ctrl=True)  # which also throws away what is typed before the shell is back
    at_prompt()
    enter("echo over $?")
    becomes(f"{LINES}.some((l) => l === 'over 130')", "and so are control keys")
    at_prompt()
    browser.type("echo hello x")
    browser.key("Backspace"), browser.key("ArrowLeft"), browser.key("ArrowLeft"), browser.key("Backspace"), browser.type("p"), browser.key("Enter")
    becomes(f"{LINES}.some((l) => l === 'helpo')", "a line can be edited")
    at_prompt()
    enter("seq 1 3000")
    becomes(f"{LINES}.includes('3000')", "much output arrives to its end")
    tap.ok(browser.run(f"{LINES}.includes('1500')"), "and is there to look back at")
    at_prompt()
    enter("vi /tmp/a")
    becomes(f"{LINES}.filter((l) => l === '~').length > 5", "a full-screen program has the screen")
    browser.type("iwritten")
    browser.until(f"{LINES}.some((l) => l.startsWith('I /tmp/a [Modified]'))")
    browser.key("Escape")
    browser.until(f"{LINES}.some((l) => l.startsWith('- /tmp/a [Modified]'))")  # what follows too soon would be a key with Alt
    enter(":wq")
    at_prompt()
    enter("cat /tmp/a")
    becomes(f"{LINES}.some((l) => l === 'written')", "and is left again")
    at_prompt()
    enter("exit 7")
    becomes(f"{STATE}.includes('exit code 7')", "how the shell ended is said")
    browser.run("document.getElementById('terminal-again').click()")
    becomes(f"{STATE} === 'Connected'", "it can be opened again")
    at_prompt()
    enter("echo $((1 + 1))")
    becomes(f"{LINES}.some((l) => l === '2')", "and works")
    browser.run("document.getElementById('terminal-close').click()")
    tap.equal(browser.complaints, [], "no error, no violation of the policy")
    browser.complaints.clear()

    # who may look, but not reach in
    browser.go(address.split("#")[0] + "#token=" + VIEWER)
    browser.until("document.querySelector('#sandboxes .empty').textContent.includes('cannot list')")
    browser.run("{ const n = document.getElementById('namespace'); n.value = 'default'; n.dispatchEvent(new Event('change')); }")
    open_terminal()
    becomes(f"/cannot (get|create) resource .*pods.exec/.test({STATE})", "who may not is refused, in the server's words")
finally:
    browser.close()
tap.end()
