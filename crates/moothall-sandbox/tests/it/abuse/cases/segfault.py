# Reads where there is nothing.
import ctypes

ctypes.string_at(0)
