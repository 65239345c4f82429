"""Plans: pure, deterministic functions from a topology to proposals. Nothing here touches a
cluster; clock, dice, files and network stay outside."""
