"""Advice: how few bits keep most of the quality of ranking by the vectors themselves."""
