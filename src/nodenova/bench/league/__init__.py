"""The league: protocols with old and new classes mixed, published numbers beside ours."""
