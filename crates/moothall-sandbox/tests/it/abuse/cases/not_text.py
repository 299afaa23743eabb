# Prints what is not text: half a character, NULs, escape sequences for a terminal.
import os

os.write(1, b"\xff\xfe half \xe2\x82 nul \0 escape \x1b]0;title\x07\x1b[2J end")
os.write(2, b"\x80\x1b[31m")
