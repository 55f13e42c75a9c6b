"""Commands: dataclasses whose fields are options; functions over them are in other rooms."""
