"""Which chapter of a dossier helps with which heading of two frameworks for documentation.

EU: Annex IV of Regulation (EU) 2024/1689 (the AI Act), by its point numbers. US: SR 11-7 of the Federal Reserve (OCC
Bulletin 2011-12), Supervisory Guidance on Model Risk Management, by its section names.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Heading:
    """A heading of a framework, the numbers of the chapters that help with it, and what remains to be written."""

    framework: str
    heading: str
    chapters: tuple[int, ...]
    remains: str


EU, US = "EU AI Act, Annex IV", "US SR 11-7"

HEADINGS = (
    Heading(EU, "1 General description", (1, 11), "provider, deployment, hardware, instructions for use"),
    Heading(EU, "2 (a)–(c) Development, design and architecture", (1, 3, 6), "reasons for the design choices"),
    Heading(
        EU, "2 (d) Data requirements and data sets", (2,), "origin, collection, labelling and cleaning of the data"
    ),
    Heading(EU, "2 (e) Human oversight and interpretation", (6, 8, 9), "who oversees, and with what power"),
    Heading(EU, "2 (f) Pre-determined changes", (), "all of it"),
    Heading(EU, "2 (g) Validation and testing", (4, 5, 7), "sign-off of the test reports"),
    Heading(EU, "2 (h) Cybersecurity", (), "all of it"),
    Heading(
        EU, "3 Monitoring, functioning and control", (4, 5, 10, 11), "effects on persons and groups, the monitoring"
    ),
    Heading(EU, "4 Appropriateness of the metrics", (4, 5, 7), "why these measures suit the use"),
    Heading(EU, "5 Risk management system", (10,), "the system itself"),
    Heading(EU, "6 Changes through the life cycle", (3, 11), "the history of changes"),
    Heading(EU, "7 Harmonised standards", (), "all of it"),
    Heading(EU, "8 EU declaration of conformity", (), "all of it"),
    Heading(EU, "9 Post-market monitoring plan", (), "all of it"),
    Heading(
        US, "Model development and implementation", (1, 2, 3), "the business need, theory and alternatives considered"
    ),
    Heading(US, "Model use", (1, 5, 10), "how the users judge and report uncertainty"),
    Heading(US, "Validation: evaluation of conceptual soundness", (1, 6, 7, 8), "an independent judgement"),
    Heading(US, "Validation: ongoing monitoring", (4, 5, 11), "a plan, with benchmarks and process verification"),
    Heading(US, "Validation: outcomes analysis", (4, 5), "back-tests over the horizon of the use"),
    Heading(US, "Governance, policies and controls", (), "all of it"),
    Heading(US, "Documentation and model inventory", (2, 3, 9, 11), "owner, status and restrictions of use"),
)
