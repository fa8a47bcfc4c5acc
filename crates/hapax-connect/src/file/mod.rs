//! JSON lines in a file that grows and is rotated.
