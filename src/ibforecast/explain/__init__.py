"""What an audit needs of explainers: what is explained, guests from other libraries, and a map by chance."""
