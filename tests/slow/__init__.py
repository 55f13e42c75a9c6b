"""Kills at random moments and full disks: minutes, so ``make test-slow`` alone runs them."""
