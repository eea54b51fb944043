"""The app: session, picker, help and export screens."""
