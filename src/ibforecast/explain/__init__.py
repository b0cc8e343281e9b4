"""The parts of explainers that an audit needs: subjects, guests from other libraries, and a random map."""
