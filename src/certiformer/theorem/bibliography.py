"""The works the project rests on, under the keys that theorem records cite.

Only fields that are certain are given; a missing page number is better than a wrong one.
"""

from __future__ import annotations

import difflib
from types import MappingProxyType

from certiformer.errors import BadInput


def _arxiv(number: str) -> dict[str, str]:
    return {"eprint": number, "archiveprefix": "arXiv"}


_ENTRIES: dict[str, dict[str, str]] = {
    "classical": {
        "type": "misc",
        "title": "Textbook mathematics; the proof is in the docstring of the module",
    },
    "candes2011": {
        "type": "article",
        "author": "Candes, Emmanuel J. and Plan, Yaniv",
        "title": "Tight Oracle Inequalities for Low-Rank Matrix Recovery from a Minimal Number of Noisy Random \
Measurements",
        "journal": "IEEE Transactions on Information Theory",
        "year": "2011",
        **_arxiv("1001.0339"),
    },
    "castin2024": {
        "type": "inproceedings",
        "author": "Castin, Valérie and Ablin, Pierre and Peyré, Gabriel",
        "title": "How Smooth Is Attention?",
        "booktitle": "International Conference on Machine Learning",
        "year": "2024",
        **_arxiv("2312.14820"),
    },
    "clopper1934": {
        "type": "article",
        "author": "Clopper, C. J. and Pearson, E. S.",
        "title": "The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial",
        "journal": "Biometrika",
        "year": "1934",
    },
    "edelman2022": {
        "type": "inproceedings",
        "author": "Edelman, Benjamin L. and Goel, Surbhi and Kakade, Sham and Zhang, Cyril",
        "title": "Inductive Biases and Variable Creation in Self-Attention Mechanisms",
        "booktitle": "International Conference on Machine Learning",
        "year": "2022",
        **_arxiv("2110.10090"),
    },
    "jiang2024": {
        "type": "inproceedings",
        "author": "Jiang, Haotian and Li, Qianxiao",
        "title": "Approximation Rate of the Transformer Architecture for Sequence Modeling",
        "booktitle": "Advances in Neural Information Processing Systems",
        "year": "2024",
        **_arxiv("2305.18475"),
    },
    "kang2018": {
        "type": "inproceedings",
        "author": "Kang, Wang-Cheng and McAuley, Julian",
        "title": "Self-Attentive Sequential Recommendation",
        "booktitle": "IEEE International Conference on Data Mining",
        "year": "2018",
        **_arxiv("1808.09781"),
    },
    "kim2021": {
        "type": "inproceedings",
        "author": "Kim, Hyunjik and Papamakarios, George and Mnih, Andriy",
        "title": "The Lipschitz Constant of Self-Attention",
        "booktitle": "International Conference on Machine Learning",
        "year": "2021",
        **_arxiv("2006.04710"),
    },
    "langford2005": {
        "type": "article",
        "author": "Langford, John",
        "title": "Tutorial on Practical Prediction Theory for Classification",
        "journal": "Journal of Machine Learning Research",
        "year": "2005",
    },
    "lotfi2024": {
        "type": "inproceedings",
        "author": "Lotfi, Sanae and Finzi, Marc and Kuang, Yilun and Rudner, Tim G. J. and Goldblum, Micah and Wilson, \
Andrew Gordon",
        "title": "Non-Vacuous Generalization Bounds for Large Language Models",
        "booktitle": "International Conference on Machine Learning",
        "year": "2024",
        **_arxiv("2312.17173"),
    },
    "lotfi2024b": {
        "type": "inproceedings",
        "author": "Lotfi, Sanae and Kuang, Yilun and Amos, Brandon and Goldblum, Micah and Finzi, Marc and Wilson, Andrew \
Gordon",
        "title": "Unlocking Tokens as Data Points for Generalization Bounds on Larger Language Models",
        "booktitle": "Advances in Neural Information Processing Systems",
        "year": "2024",
        **_arxiv("2407.18158"),
    },
    "mohri2008": {
        "type": "inproceedings",
        "author": "Mohri, Mehryar and Rostamizadeh, Afshin",
        "title": "Rademacher Complexity Bounds for Non-I.I.D. Processes",
        "booktitle": "Advances in Neural Information Processing Systems",
        "year": "2008",
    },
    "mohri2018": {
        "type": "book",
        "author": "Mohri, Mehryar and Rostamizadeh, Afshin and Talwalkar, Ameet",
        "title": "Foundations of Machine Learning",
        "publisher": "MIT Press",
        "year": "2018",
    },
    "shalev2014": {
        "type": "book",
        "author": "Shalev-Shwartz, Shai and Ben-David, Shai",
        "title": "Understanding Machine Learning: From Theory to Algorithms",
        "publisher": "Cambridge University Press",
        "year": "2014",
    },
    "trauger2024": {
        "type": "inproceedings",
        "author": "Trauger, Jacob and Tewari, Ambuj",
        "title": "Sequence Length Independent Norm-Based Generalization Bounds for Transformers",
        "booktitle": "International Conference on Artificial Intelligence and Statistics",
        "year": "2024",
        **_arxiv("2310.13088"),
    },
    "bai2023": {
        "type": "inproceedings",
        "author": "Bai, Yu and Chen, Fan and Wang, Huan and Xiong, Caiming and Mei, Song",
        "title": "Transformers as Statisticians: Provable In-Context Learning with In-Context Algorithm Selection",
        "booktitle": "Advances in Neural Information Processing Systems",
        "year": "2023",
        **_arxiv("2306.04637"),
    },
    "chiang2022": {
        "type": "inproceedings",
        "author": "Chiang, David and Cholak, Peter",
        "title": "Overcoming a Theoretical Limitation of Self-Attention",
        "booktitle": "Annual Meeting of the Association for Computational Linguistics",
        "year": "2022",
        **_arxiv("2202.12172"),
    },
    "chen2024": {
        "type": "misc",
        "author": "Chen, Lijie and Peng, Binghui and Wu, Hongxun",
        "title": "Theoretical limitations of multi-layer Transformer",
        "year": "2024",
        **_arxiv("2412.02975"),
    },
    "dehghani2019": {
        "type": "inproceedings",
        "author": "Dehghani, Mostafa and Gouws, Stephan and Vinyals, Oriol and Uszkoreit, Jakob and Kaiser, Łukasz",
        "title": "Universal Transformers",
        "booktitle": "International Conference on Learning Representations",
        "year": "2019",
        **_arxiv("1807.03819"),
    },
    "gatmiry2024": {
        "type": "inproceedings",
        "author": "Gatmiry, Khashayar and Saunshi, Nikunj and Reddi, Sashank J. and Jegelka, Stefanie and Kumar, Sanjiv",
        "title": "Can Looped Transformers Learn to Implement Multi-step Gradient Descent for In-context Learning?",
        "booktitle": "International Conference on Machine Learning",
        "year": "2024",
        **_arxiv("2410.08292"),
    },
    "giannou2023": {
        "type": "inproceedings",
        "author": "Giannou, Angeliki and Rajput, Shashank and Sohn, Jy-yong and Lee, Kangwook and Lee, Jason D. and \
Papailiopoulos, Dimitris",
        "title": "Looped Transformers as Programmable Computers",
        "booktitle": "International Conference on Machine Learning",
        "year": "2023",
        **_arxiv("2301.13196"),
    },
    "graves2016": {
        "type": "misc",
        "author": "Graves, Alex",
        "title": "Adaptive Computation Time for Recurrent Neural Networks",
        "year": "2016",
        **_arxiv("1603.08983"),
    },
    "gumaan2025": {
        "type": "misc",
        "author": "Gumaan, Esmail",
        "title": "Universal Approximation Theorem for a Single-Layer Transformer",
        "year": "2025",
        **_arxiv("2507.10581"),
    },
    "hahn2020": {
        "type": "article",
        "author": "Hahn, Michael",
        "title": "Theoretical Limitations of Self-Attention in Neural Sequence Models",
        "journal": "Transactions of the Association for Computational Linguistics",
        "volume": "8",
        "pages": "156--171",
        "year": "2020",
        **_arxiv("1906.06755"),
    },
    "hu2025": {
        "type": "misc",
        "author": "Hu, Jerry Yao-Chieh and Liu, Hude and Chen, Hong-Yu and Wu, Weimin and Liu, Han",
        "title": "Universal Approximation with Softmax Attention",
        "year": "2025",
        **_arxiv("2504.15956"),
    },
    "jensen1906": {
        "type": "article",
        "author": "Jensen, Johan Ludwig William Valdemar",
        "title": "Sur les fonctions convexes et les inégalités entre les valeurs moyennes",
        "journal": "Acta Mathematica",
        "volume": "30",
        "pages": "175--193",
        "year": "1906",
    },
    "johansson2017": {
        "type": "article",
        "author": "Johansson, Fredrik",
        "title": "Arb: Efficient Arbitrary-Precision Midpoint-Radius Interval Arithmetic",
        "journal": "IEEE Transactions on Computers",
        "volume": "66",
        "number": "8",
        "pages": "1281--1292",
        "year": "2017",
        "doi": "10.1109/TC.2017.2690633",
    },
    "kajitsuka2024": {
        "type": "inproceedings",
        "author": "Kajitsuka, Tokio and Sato, Issei",
        "title": "Are Transformers with One Layer Self-Attention Using Low-Rank Weight Matrices Universal Approximators?",
        "booktitle": "International Conference on Learning Representations",
        "year": "2024",
        **_arxiv("2307.14023"),
    },
    "lebedev1971": {
        "type": "article",
        "author": "Lebedev, Vyacheslav I. and Finogenov, S. A.",
        "title": "The order of choice of the iteration parameters in the cyclic Chebyshev iteration method",
        "journal": "USSR Computational Mathematics and Mathematical Physics",
        "year": "1971",
    },
    "li2024": {
        "type": "inproceedings",
        "author": "Li, Zhiyuan and Liu, Hong and Zhou, Denny and Ma, Tengyu",
        "title": "Chain of Thought Empowers Transformers to Solve Inherently Serial Problems",
        "booktitle": "International Conference on Learning Representations",
        "year": "2024",
        **_arxiv("2402.12875"),
    },
    "lindner2023": {
        "type": "misc",
        "author": "Lindner, David and Kramár, János and Farquhar, Sebastian and Rahtz, Matthew and McGrath, Thomas "
        "and Mikulik, Vladimir",
        "title": "Tracr: Compiled Transformers as a Laboratory for Interpretability",
        "year": "2023",
        **_arxiv("2301.05062"),
    },
    "liu2023": {
        "type": "inproceedings",
        "author": "Liu, Bingbin and Ash, Jordan T. and Goel, Surbhi and Krishnamurthy, Akshay and Zhang, Cyril",
        "title": "Transformers Learn Shortcuts to Automata",
        "booktitle": "International Conference on Learning Representations",
        "year": "2023",
        **_arxiv("2210.10749"),
    },
    "liu2025": {
        "type": "misc",
        "author": "Liu, Hude and Hu, Jerry Yao-Chieh and Song, Zhao and Liu, Han",
        "title": "Attention Mechanism, Max-Affine Partition, and Universal Approximation",
        "year": "2025",
        **_arxiv("2504.19901"),
    },
    "luo2022": {
        "type": "inproceedings",
        "author": "Luo, Shengjie and Li, Shanda and Zheng, Shuxin and Liu, Tie-Yan and Wang, Liwei and He, Di",
        "title": "Your Transformer May Not be as Powerful as You Expect",
        "booktitle": "Advances in Neural Information Processing Systems",
        "year": "2022",
        **_arxiv("2205.13401"),
    },
    "makino2003": {
        "type": "article",
        "author": "Makino, Kyoko and Berz, Martin",
        "title": "Taylor Models and Other Validated Functional Inclusion Methods",
        "journal": "International Journal of Pure and Applied Mathematics",
        "year": "2003",
    },
    "moore1966": {
        "type": "book",
        "author": "Moore, Ramon E.",
        "title": "Interval Analysis",
        "publisher": "Prentice-Hall",
        "year": "1966",
    },
    "imai1986": {
        "type": "article",
        "author": "Imai, Hiroshi and Iri, Masao",
        "title": "An Optimal Algorithm for Approximating a Piecewise Linear Function",
        "journal": "Journal of Information Processing",
        "volume": "9",
        "number": "3",
        "pages": "159--162",
        "year": "1986",
    },
    "merrill2023": {
        "type": "article",
        "author": "Merrill, William and Sabharwal, Ashish",
        "title": "The Parallelism Tradeoff: Limitations of Log-Precision Transformers",
        "journal": "Transactions of the Association for Computational Linguistics",
        "volume": "11",
        "pages": "531--545",
        "year": "2023",
        **_arxiv("2207.00729"),
    },
    "merrill2024": {
        "type": "inproceedings",
        "author": "Merrill, William and Sabharwal, Ashish",
        "title": "The Expressive Power of Transformers with Chain of Thought",
        "booktitle": "International Conference on Learning Representations",
        "year": "2024",
        **_arxiv("2310.07923"),
    },
    "nadaraya1964": {
        "type": "article",
        "author": "Nadaraya, Elizbar A.",
        "title": "On Estimating Regression",
        "journal": "Theory of Probability and Its Applications",
        "volume": "9",
        "number": "1",
        "pages": "141--142",
        "year": "1964",
    },
    "olsson2022": {
        "type": "misc",
        "author": "Olsson, Catherine and Elhage, Nelson and Nanda, Neel and Joseph, Nicholas and others",
        "title": "In-context Learning and Induction Heads",
        "year": "2022",
        **_arxiv("2209.11895"),
    },
    "oswald2023": {
        "type": "inproceedings",
        "author": "Oswald, Johannes von and Niklasson, Eyvind and Randazzo, Ettore and Sacramento, João and Mordvintsev, \
Alexander and Zhmoginov, Andrey and Vladymyrov, Max",
        "title": "Transformers Learn In-Context by Gradient Descent",
        "booktitle": "International Conference on Machine Learning",
        "year": "2023",
        **_arxiv("2212.07677"),
    },
    "peng2024": {
        "type": "misc",
        "author": "Peng, Binghui and Narayanan, Srini and Papadimitriou, Christos",
        "title": "On Limitations of the Transformer Architecture",
        "year": "2024",
        **_arxiv("2402.08164"),
    },
    "perez2021": {
        "type": "article",
        "author": "Pérez, Jorge and Barceló, Pablo and Marinkovic, Javier",
        "title": "Attention is Turing-Complete",
        "journal": "Journal of Machine Learning Research",
        "volume": "22",
        "number": "75",
        "pages": "1--35",
        "year": "2021",
    },
    "petrov2024": {
        "type": "inproceedings",
        "author": "Petrov, Aleksandar and Torr, Philip H. S. and Bibi, Adel",
        "title": "Prompting a Pretrained Transformer Can Be a Universal Approximator",
        "booktitle": "International Conference on Machine Learning",
        "year": "2024",
        **_arxiv("2402.14753"),
    },
    "sanford2024": {
        "type": "misc",
        "author": "Sanford, Clayton and Hsu, Daniel and Telgarsky, Matus",
        "title": "One-layer transformers fail to solve the induction heads task",
        "year": "2024",
        **_arxiv("2408.14332"),
    },
    "sanford2024b": {
        "type": "inproceedings",
        "author": "Sanford, Clayton and Hsu, Daniel and Telgarsky, Matus",
        "title": "Transformers, parallel computation, and logarithmic depth",
        "booktitle": "International Conference on Machine Learning",
        "year": "2024",
        **_arxiv("2402.09268"),
    },
    "vaswani2017": {
        "type": "inproceedings",
        "author": (
            "Vaswani, Ashish and Shazeer, Noam and Parmar, Niki and Uszkoreit, Jakob and Jones, Llion"
            " and Gomez, Aidan N. and Kaiser, Łukasz and Polosukhin, Illia"
        ),
        "title": "Attention Is All You Need",
        "booktitle": "Advances in Neural Information Processing Systems",
        "year": "2017",
        **_arxiv("1706.03762"),
    },
    "vovk2005": {
        "type": "book",
        "author": "Vovk, Vladimir and Gammerman, Alex and Shafer, Glenn",
        "title": "Algorithmic Learning in a Random World",
        "publisher": "Springer",
        "year": "2005",
    },
    "wagstaff2019": {
        "type": "inproceedings",
        "author": "Wagstaff, Edward and Fuchs, Fabian and Engelcke, Martin and Posner, Ingmar and Osborne, Michael A.",
        "title": "On the Limitations of Representing Functions on Sets",
        "booktitle": "International Conference on Machine Learning",
        "year": "2019",
        **_arxiv("1901.09006"),
    },
    "watson1964": {
        "type": "article",
        "author": "Watson, Geoffrey S.",
        "title": "Smooth Regression Analysis",
        "journal": "Sankhyā, Series A",
        "volume": "26",
        "number": "4",
        "pages": "359--372",
        "year": "1964",
    },
    "waudby2024": {
        "type": "article",
        "author": "Waudby-Smith, Ian and Ramdas, Aaditya",
        "title": "Estimating Means of Bounded Random Variables by Betting",
        "journal": "Journal of the Royal Statistical Society: Series B",
        "year": "2024",
        **_arxiv("2010.09686"),
    },
    "weiss2021": {
        "type": "misc",
        "author": "Weiss, Gail and Goldberg, Yoav and Yahav, Eran",
        "title": "Thinking Like Transformers",
        "year": "2021",
        **_arxiv("2106.06981"),
    },
    "xu2020": {
        "type": "inproceedings",
        "author": (
            "Xu, Kaidi and Shi, Zhouxing and Zhang, Huan and Wang, Yihan and Chang, Kai-Wei and Huang, Minlie"
            " and Kailkhura, Bhavya and Lin, Xue and Hsieh, Cho-Jui"
        ),
        "title": "Automatic Perturbation Analysis for Scalable Certified Robustness and Beyond",
        "booktitle": "Advances in Neural Information Processing Systems",
        "year": "2020",
        **_arxiv("2002.12920"),
    },
    "yang2018": {
        "type": "inproceedings",
        "author": "Yang, Zhilin and Dai, Zihang and Salakhutdinov, Ruslan and Cohen, William W.",
        "title": "Breaking the Softmax Bottleneck: A High-Rank RNN Language Model",
        "booktitle": "International Conference on Learning Representations",
        "year": "2018",
        **_arxiv("1711.03953"),
    },
    "yau2024": {
        "type": "misc",
        "author": "Yau, Morris and Akyürek, Ekin and Mao, Jiayuan and Tenenbaum, Joshua B. and Jegelka, Stefanie and \
Andreas, Jacob",
        "title": "Learning Linear Attention in Polynomial Time",
        "year": "2024",
        **_arxiv("2410.10101"),
    },
    "yun2020": {
        "type": "inproceedings",
        "author": (
            "Yun, Chulhee and Bhojanapalli, Srinadh and Rawat, Ankit Singh and Reddi, Sashank J. and Kumar, Sanjiv"
        ),
        "title": "Are Transformers universal approximators of sequence-to-sequence functions?",
        "booktitle": "International Conference on Learning Representations",
        "year": "2020",
        **_arxiv("1912.10077"),
    },
    "yun2020b": {
        "type": "inproceedings",
        "author": (
            "Yun, Chulhee and Chang, Yin-Wen and Bhojanapalli, Srinadh and Rawat, Ankit Singh and Reddi, Sashank J."
            " and Kumar, Sanjiv"
        ),
        "title": "O(n) Connections are Expressive Enough: Universal Approximability of Sparse Transformers",
        "booktitle": "Advances in Neural Information Processing Systems",
        "year": "2020",
        **_arxiv("2006.04862"),
    },
    "zaheer2017": {
        "type": "inproceedings",
        "author": (
            "Zaheer, Manzil and Kottur, Satwik and Ravanbakhsh, Siamak and Póczos, Barnabás and Salakhutdinov, Ruslan"
            " and Smola, Alexander J."
        ),
        "title": "Deep Sets",
        "booktitle": "Advances in Neural Information Processing Systems",
        "year": "2017",
        **_arxiv("1703.06114"),
    },
}

BIBLIOGRAPHY = MappingProxyType({key: MappingProxyType(fields) for key, fields in _ENTRIES.items()})
"""Citation key -> fields, with the BibTeX entry type under `type`."""


def bibtex(key: str) -> str:
    """The BibTeX entry of a citation key.

    >>> print(bibtex("moore1966"))
    @book{moore1966,
      author = {Moore, Ramon E.},
      title = {{Interval Analysis}},
      publisher = {Prentice-Hall},
      year = {1966},
    }
    """
    fields = _entry(key)
    lines = [f"@{fields['type']}{{{key},"]
    for name, value in fields.items():
        if name != "type":
            # Double braces keep the capitals of a title under every bibliography style.
            lines.append(f"  {name} = {{{{{value}}}}}," if name == "title" else f"  {name} = {{{value}}},")
    return "\n".join([*lines, "}"])


def cite(key: str) -> str:
    """A citation in words, on one line.

    >>> cite("petrov2024")
    'Petrov, Torr and Bibi (2024), Prompting a Pretrained Transformer Can Be a Universal Approximator, arXiv 2402.14753'
    """
    fields = _entry(key)
    parts = [fields["title"]]
    if "author" in fields:
        parts.insert(0, f"{_surnames(fields['author'])} ({fields['year']})")
    if "eprint" in fields:
        parts.append(f"arXiv {fields['eprint']}")
    elif "journal" in fields:
        parts.append(fields["journal"])
    elif "publisher" in fields:
        parts.append(fields["publisher"])
    return ", ".join(parts)


def _entry(key: str) -> MappingProxyType[str, str]:
    if key in BIBLIOGRAPHY:
        return BIBLIOGRAPHY[key]
    near = difflib.get_close_matches(key, BIBLIOGRAPHY, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known keys are {', '.join(sorted(BIBLIOGRAPHY))}"
    raise BadInput(f"no work is cited as {key!r}; {hint}")


def _surnames(author: str) -> str:
    names = [name.partition(",")[0] for name in author.split(" and ")]
    if len(names) > 3:
        return f"{names[0]} et al."
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
