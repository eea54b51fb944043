"""The Textual app: it paints what the session computed, and nothing else decides there."""
