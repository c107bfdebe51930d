"""The folder about a violation: the page, the Markdown, the index, and what stands on them.

In go an account of a violation; out come files. The story, the picture and the ready test come from
the folders of those names, which are known here.
"""
