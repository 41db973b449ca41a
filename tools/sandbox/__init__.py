"""The sandbox ladder: bubblewrap, then Landlock, then plain; seccomp at every level."""
