"""A table of keys and answers: what is one answer, what is not, and which keys are none."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datpo.evaluate.verify import arithmetic, numeric
from datpo.evaluate.verify.compare import judge, quick

SAME = [
    ("5", "5.0"), ("5", "+5"), (r"\frac{1}{2}", r"\frac{1}2"), (r"\frac12", "0.50"),
    (r"-\frac12", r"\frac{-1}{2}"), (r"-\frac12", "-.5"), ("12", r"\text{12}"), ("1234", r"1\,234"),
    ("1,234", "1234"), ("1{,}000{,}000", "1000000"), ("12345", r"\$12,345"),
    ("12345", r"12,345 \text{ dollars}"), (r"3\frac{1}{4}", "3.25"), (r"3 \frac14", r"\frac{13}{4}"),
    (r"-3\frac{1}{4}", "-3.25"), (r"0.\overline{27}", r"\frac{3}{11}"), (r"\frac{1}{6}", r"0.1\overline{6}"),
    (r"2\sqrt{3}", r"\sqrt{12}"), (r"\sqrt{50}", r"5\sqrt2"), (r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt{2}}"),
    ("x=3", "3"), ("3", "x = 3"), ("(1,2)", "(x,y)=(1,2)"), ("(1,2)", "x=1, y=2"), ("x=1,y=2", "y=2, x=1"),
    (r"\{1,2\}", r"\{2,1\}"), ("1,2", r"x = 1 \text{ or } x = 2"), (r"x \in [1,2]", r"1\le x\le 2"),
    (r"(-\infty,2)\cup(3,\infty)", r"x<2 \text{ or } x>3"), (r"[3,\infty)", r"x \ge 3"), ("30", r"30^\circ"),
    (r"30^\circ", r"\frac{\pi}{6}"), (r"50\%", r"\frac12"), (r"50\%", "50"), (r"\text{yes}", "Yes"),
    (r"\text{Yes}", r"\textbf{yes}."), ("B", r"\textbf{(B)}"), (r"\text{(C)}", "C."), ("B", "(B) 12"),
    ("2:3", "4:6"), (r"\frac{2}{3}", "2:3"), ("2:3", r"\frac23"), ("4:30", r"4:30 \text{ p.m.}"),
    (r"4:30 \text{ PM}", "4:30 p.m."), ("1010_2", "1010_{2}"), ("1010_2", r"1010_{\text{two}}"),
    ("AB_{16}", "AB_{16}"), (r"10\text{ cm}", "10"), ("10 cm", r"10 \text{ centimeters}"),
    (r"10\text{ cm}^2", r"10 \text{ square cm}"), ("3x^2+2x", "x(3x+2)"),
    (r"\frac{x+1}{x-1}", r"\frac{1+x}{x-1}"), ("(x-1)(x+1)", "x^2-1"), (r"\sin^2 x", r"1-\cos^2 x"),
    (r"\tan x", r"\frac{\sin x}{\cos x}"), ("e^{2x}", "(e^x)^2"), (r"\ln 8", r"3\ln 2"),
    (r"\log_{10} 100", "2"), (r"\lfloor 2.5\rfloor", "2"), ("|{-5}|", "5"), (r"\binom{5}{2}", "10"),
    ("5!", "120"), ("2^{10}", "1024"), ("n!", "n(n-1)!"),
    (r"1\pm\sqrt{2}", r"1+\sqrt{2} \text{ and } 1-\sqrt{2}"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{bmatrix}1&2\\3&4\end{bmatrix}"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", "(1,2)"), (r"\emptyset", r"\{ \}"),
    (r"\text{no solution}", "No solution"), ("y=2x+3", "2x-y=-3"), ("y = 2x+3", "y-3=2x"), ("f(x)=x^2", "x^2"),
    ("x>3", "3<x"), (r"x \ge 3", r"3 \le x"), ("2<x<3", "(2,3)"), (r"\frac{1}{2}", "½"),
    (r"1\frac{1}{2}", "1½"), ("x^2", "x²"), ("5", "５"), ("-3", "−3"), (r"3\times 10^{-4}", "0.0003"),
    (r"6.02\times10^{23}", "602000000000000000000000"), (r"3\pi", "3π"), (r"\pi", r"\pi \approx 3.14"),
    ("10^{100}", "10^{100}"), ("i", r"\sqrt{-1}"), (r"\frac{3+i}{2}", "1.5+0.5i"),
    (r"\text{June 20}", "June 20"), (r"12\text{ hours}", "12 hours"), (r"\frac{3}{4}\text{ cup}", "0.75"),
    ("17", r"17 \text{ apples}"), ("$17$", "17"), ("17", "$17$"), (r"75^{\circ}", r"75 \text{ degrees}"),
    (r"\dfrac{2}{3}", r"\tfrac{2}{3}"), (r"(0,\infty)", r"(0,+\infty)"), (r"\mathbb{R}", r"(-\infty,\infty)"),
    ("A", r"\mathrm{A}"), (r"2\sqrt{2}", r"2\cdot\sqrt{2}"), (r"\sqrt{2}/2", r"\frac{1}{2}\sqrt{2}"),
    ("x_1=1,x_2=2", "1,2"), (r"\left(\frac{1}{2}, 3\right)", "(0.5,3)"), ("3,4,5", r"\{3,4,5\}"),
    ("a=3,b=4", "3, 4"), ("y = x", "x=y"), (r"\angle A=30^\circ", "30"), (r"\text{Area} = 12", "12"),
    ("-1", "i^2"), ("2^{64}", "18446744073709551616"), (r"\frac{9}{4}", r"2\frac{1}{4}"),
    (r"(3, \frac{\pi}{2})", r"\left( 3,\ \pi/2 \right)"), ("1,2,3", "1; 2; 3"), ("0", "-0"),
    ("100", r"1 \times 10^2"), (r"\frac{\pi}{3}", r"60^\circ"), ("x+y+z", "z+y+x"), ("2n+1", "1+2n"),
    ("-x", "-1x"), (r"\sqrt[3]{-8}", "-2"), (r"4\text{th}", "4"), (r"21^{\text{st}}", "21"), ("0.5", r"50\%"),
    (r"\text{Monday}", "monday"), ("5^2", "25"), (r"\text{A and B}", r"\text{A and B}"),
    (r"\frac{a}{b}", "a/b"), ("2,3", "(2,3)"), ("12:00", "12:00"), (r"5\sqrt{2}\text{ units}", r"\sqrt{50}"),
    (r"7\text{ m/s}", "7"), (r"\{x\mid x>2\}", r"(2,\infty)"), (r"\{x : x>2\}", "x>2"),
    (r"\frac{1}{x}", "x^{-1}"), (r"\sqrt{x^2+1}", "(x^2+1)^{1/2}"), (r"\cos 60^\circ", r"\frac12"),
    (r"\cot x", r"\frac{1}{\tan x}"), ("5", "5."), ("5", " 5 "), (r"\boxed{5}", "5"), (r"15\%", "0.15"),
    (r"\frac{15}{2}", "7.5"), (r"m=\frac{1}{2}", r"\frac{1}{2}"), ("a^2-b^2", "(a-b)(a+b)"),
    (r"\text{even}", "even"), ("(1,2),(3,4)", r"(1,2) \text{ and } (3,4)"),
    (r"\frac{\ln 3}{\ln 2}", r"\log_2 3"),
    (r"\{x | x < \frac{3}{2}\} - \{-6\}", r"(-\infty,-6)\cup(-6,\frac32)"),
    (r"\mathbb{R}\setminus\{0\}", r"(-\infty,0)\cup(0,\infty)"), (r"x\neq 0", r"(-\infty,0)\cup(0,\infty)"),
    (r"\mathbb{R}\backslash\{1,-1\}", r"(-\infty,-1)\cup(-1,1)\cup(1,\infty)"),
    ("5", "5,"), ("5", "\"5\""), ("5", "**5**"), ("5", "5;"), ("5", "(5)"), ("5", "[5]"), ("5", "5\\\\"),
    ("5", r"\,5\,"), ("5", "`5`"), ("5", r"5\text{.}"), ("A", "A)"), ("A", r"\text{A. 42}"),
    ("A", r"\text{Option A}"), (r"\text{(A)}", r"(\text{A})"), ("A", r"\mathbf{A}"), ("A", r"\textbf{A}"),
    (r"\text{(B)}", r"\textbf{(B) } 12"), ("B", r"\text{B) 12}"), ("D", r"\textbf{(D)}\ 24"),
    (r"\text{Tuesday}", "TUESDAY"), (r"\text{Tuesday}", r"\mathrm{Tuesday}"), (r"\text{Tuesday}", "Tuesday."),
    (r"\text{yes}", r"\text{Yes.}"), (r"\text{odd}", "odd"), ("1500", "1.5e3"), ("1500", "1.5E3"),
    (r"2 \times 10^{-10}", "2e-10"), ("1500", r"1.5 \times 10^3"), ("12345678", "12 345 678"),
    ("1000.5", "1,000.50"), ("1000", r"1\,000"), (r"\sqrt{2}", r"\sqrt 2"), (r"\sqrt{2}", "√2"),
    (r"\sqrt{2}", "2^{0.5}"), (r"\sqrt{2}", r"\sqrt{8}/2"), (r"\sqrt{2}", "sqrt(2)"), (r"2\pi", "2 pi"),
    (r"2\pi", "2*pi"), (r"\frac{\pi}{2}", r"\frac12\pi"), ("5", "5=x"), ("y=2x+1", "2y=4x+2"),
    ("y=2x+1", "y-2x=1"), (r"x\ge5", r"5\le x"), (r"\frac{1}{2}", "(1)/(2)"), (r"\frac{1}{2}", "1 / 2"),
    (r"\frac{1}{2}", r"\frac{ 1 }{ 2 }"), (r"\frac{1}{2}", r"{1 \over 2}"), ("5", r"\text{The answer is } 5"),
    ("5", r"x = \mathbf{5}"), ("5", r"\mathbf{5}"), ("5", r"\bf 5"), ("5", r"\displaystyle 5"), ("-5", "- 5"),
    ("5", "--5"), (r"-\frac12", r"\frac{1}{-2}"), (r"i\sqrt{3}", r"\sqrt{3}i"), ("2:3", "2 : 3"),
    ("2:3", r"2 \text{ to } 3"), ("2:3", "2/3"), ("5", "5 cm"), ("5", "5cm"), ("5", "5 cm^2"),
    (r"5\text{ cm}^2", "5"), ("5", r"5 \, \text{cm}^{2}"), ("5000000", r"5\text{ million}"),
    ("5", r"5\text{ dollars}"), ("5", "USD 5"), ("5", r"\pounds 5"), ("5", "€5"), ("5", "5€"),
    ("5", r"\text{\$}5"), ("5", r"\$5.00"), (r"25\%", "25 percent"), (r"25\%", r"25\text{ percent}"),
    ("45", r"45\text{ degrees}"), (r"45^\circ", "45 deg"),
    (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\left(\begin{array}{cc} 1 & 2 \\ 3 & 4\end{array}\right)"),
    (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\left[\begin{matrix}1&2\\3&4\end{matrix}\right]"),
    (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\begin{pmatrix}1&2\\3&4\\ \end{pmatrix}"),
    (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\begin{bmatrix} 1 & 2 \\[2pt] 3 & 4 \end{bmatrix}"),
    ("(1,2)", r"\langle 1,2\rangle"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix} 1 \\ \frac{4}{2} \end{pmatrix}"),
    ("(1,2)", r"\left( 1, 2 \right)"), (r"\{1,2\}", r"\{1,1,2\}"), ("2,2", "2"), ("2", "2,2"),
    (r"(-\infty,3]", r"x \leq 3"), ("(0,1)", "]0,1["), ("[0,1)", "[0,1["), (r"\{1,2,3\}", "{1,2,3}"),
    ("1,2", "1 and 2"), ("1,2", "x = 1, 2"), ("1,2", "x_1 = 1, x_2 = 2"), ("(3,4)", r"x=3,\ y=4"),
    ("1,2", r"\text{1 and 2}"), ("3,-3", r"x = \pm 3"), (r"\pm 3", r"x=3 \text{ or } x=-3"),
    (r"-1\pm 2i", "-1+2i, -1-2i"), (r"\pm\sqrt{2}", r"-\sqrt2,\sqrt2"), ("10!", "3628800"),
    (r"\frac{8!}{5!}", "336"), (r"\log_2 8", "3"), (r"\log_{2}{8}", "3"), ("x^2-1", "(x-1)(x+1)"),
    (r"\frac{2x}{4}", r"\frac{x}{2}"), ("2^{3x}", "8^x"), ("n(n+1)/2", r"\frac{n(n+1)}{2}"),
    (r"\frac{n^2+n}{2}", r"\frac{1}{2}n(n+1)"), (r"\tan^{-1} 2", r"\arctan 2"), (r"\sec^2 x", r"1+\tan^2 x"),
    (r"e^{i\pi}", "-1"), (r"5(\cos 90^\circ + i \sin 90^\circ)", "5i"), (r"3\frac12", "3.5"),
    ("3 1/2", "3.5"), (r"3-\frac12", "2.5"), (r"-1\frac12", "-1.5"), (r"-1\frac12", r"-\frac32"),
    ("6 - 5i", "-5i+6"), (r"\frac{1}{2}+\frac{\sqrt{3}}{2}i", r"\frac{1+i\sqrt{3}}{2}"),
    (r"\frac{3}{2}", r"1 \frac{1}{2}"), (r"12\text{ m}", r"12\text{ meters}"), ("90", r"90^{\circ}"),
    (r"\frac{5}{8}", r"62.5\%"), ("0", "0.0"), ("0.1", r"\frac{1}{10}"), (".1", "0.10"),
    (r"\text{even function}", "even function"), ("f(x)=x^2", r"f(x) = x \cdot x"),
    (r"\sqrt{5+2\sqrt6}", r"\sqrt2+\sqrt3"), (r"4\pi r^2", r"4 \pi r^{2}"),
    (r"\frac{4}{3}\pi r^3", r"\frac{4\pi r^3}{3}"), (r"2\text{ pounds}", "2 lbs"),
    (r"\text{3:30 PM}", r"3:30\text{ p.m.}"), (r"-\frac{1}{3}", r"-0.\overline{3}"),
    (r"0.\overline{3}", "1/3"), (r"0.\bar{3}", "1/3"), (r"0.\dot{3}", "1/3"), ("99", r"99\%"),
    ("1", r"\sin^2 x+\cos^2 x"), ("16", r"\underline{16}"), ("5", r"5\;"), ("7", r"\mathrm{7}"),
    ("7", r" \; 7 \; "), ("7", r"\text{ 7 }"), (r"\$36", r"36 \text{ dollars}"),
    (r"\text{Saturday}", "Saturday"), (r"8\text{ hours}", r"8\text{ hrs}"), (r"13\text{th}", "13"),
    ("2x+3y=6", "3y = 6-2x"), ("2x+3y=6", "4x+6y=12"), (r"x=\frac{1}{2}", r"\frac12"), ("k=3", "3"),
    (r"r = 2\sin\theta", r"r=2 \sin \theta"), (r"\theta=30^\circ", r"30^\circ"), (r"(2,\infty)", "x>2"),
    (r"\{2,3\}", "x=2,3"), ("x^2+y^2=1", "y^2+x^2 = 1"), ("x^2 + (y-1)^2 = 4", "x^2+y^2-2y-3=0"),
    (r"\frac{1}{1+x}", "(1+x)^{-1}"), (r"5 \cdot 10^{3}", "5000"), ("-2 < x < 3", "(-2,3)"),
    (r"\sqrt{x}", "x^{1/2}"), ("x^{3/2}", r"x\sqrt{x}"), (r"\frac{\sqrt[3]{4}}{2}", "2^{-1/3}"),
    (r"1, 2, \ldots, 10", r"1,2,\dots,10"), (r"\text{I}", "I"), (r"\text{II}", "II"), (r"\text{a}", "a"),
    ("2^{2021}-1", "2^{2021} - 1"), (r"\lfloor \frac{n}{2} \rfloor", r"\left\lfloor n/2 \right\rfloor"),
    (r"\text{A,D}", "D, A"), ("9{,}240", r"9,\!240"), (r"\approx 8.24 \text{ mph}", "8.24"), ("0.0011_{2}", "0.0011_2"),
    (r"\begin{pmatrix} 1 & \phantom -1 \end{pmatrix}", r"\begin{pmatrix} 1 & 1 \end{pmatrix}"), ("(1,2,3)", "[1,2,3]"),
    # Commands, colours, sizes and characters of other systems.
    (r"\frac{1}{2}", r"\nicefrac{1}{2}"), (r"\frac{1}{2}", r"\\frac{1}{2}"), ("5", r"\color{red}{5}"),
    ("5", r"\textcolor{red}{5}"), ("5", r"\Large{5}"), ("5", r"\(5\)"), ("5", r"\[5\]"), ("5", "5\\ "),
    ("5", "5\u200b"),
    ("12", "12。"), ("1,2", "1、2"), ("x_1", "x₁"), (r"\lfloor x\rfloor", "⌊x⌋"), (r"\sqrt[3]{2}", "∛2"),
    (r"\mathbb{R}\setminus\{0\}", "ℝ∖{0}"), (r"9\pi", r"9\mathrm{\pi}"), ("3+4i", r"3+4\mathrm{i}"),
    (r"\arctan 2", r"\operatorname{arctan}(2)"), ("x^2+2x+1", "x**2+2*x+1"), ("x^{10}", "x^10"),
    (r"\sqrt{10}", r"\sqrt10"), (r"\sqrt{(x+1)^2+1}", "sqrt((x+1)^2+1)"), ("10", r"{5 \choose 2}"),
    ("-5", "{-}5"), ("1500", "1.5E+3"), ("36", r"\textdollar 36"), ("20", "US$20"), (r"45^\circ", "45^o"),
    ("-40", r"-40^\circ F"), ("12", r"12\,\frac{\text{m}}{\text{s}}"), ("12", r"12\,\mathrm{m}\cdot\mathrm{s}^{-1}"),
    ("1,2", r"1\text{, }2"), ("2:3", r"2\mathbin{:}3"), ("2:3", "2∶3"), (r"1234\pi", r"1\,234\pi"),
    # Lists and points: in one text, with thousands, too long to match item by item.
    (r"\text{Alice and Bob}", r"\text{Bob and Alice}"), ("5,7,11", r"\text{5, 7, and 11}"), ("(1,2)", r"\text{(1,2)}"),
    ("(1000,2000)", "(1,000, 2,000)"), (",".join(map(str, range(70))), ", ".join(map(str, range(70)))),
    # Words.
    (r"\text{red}", r"\text{Red}"), ("Red", r"\text{red}"),
    # Labels, chains of equations and systems.
    ("7", "[ABC]=7"), ("2:3", "a:b=2:3"), ("12", "f(g(2))=12"), ("12", "f^{-1}(2)=12"),
    (r"\frac34", r"\mathbb{P}(A)=0.75"),
    ("6", r"2\cdot3=6"), ("6", r"\sqrt{36}=6"), ("(1,1,1)", "x=y=z=1"),
    ("(1,2)", r"\begin{cases}x=1\\y=2\end{cases}"), ("(1,2)", r"\left\{\begin{array}{l}x=1\\y=2\end{array}\right."),
    ("x=1,y=2", r"\begin{aligned}x&=1\\y&=2\end{aligned}"),
    (
        r"f(x)=\begin{cases} x, & x\ge0\\ -x, & x<0\end{cases}",
        r"\begin{cases} -x & \text{if } x < 0 \\ x & \text{if } x \geq 0 \end{cases}",
    ),
    # Conditions.
    ("(-1,1)", "|x|<1"), (r"(-\infty,-3]\cup[3,\infty)", r"|x|\ge 3"), ("(-2,7)", r"x > -2 \text{ and } x < 7"),
    (r"x\ne\pm1", r"(-\infty,-1)\cup(-1,1)\cup(1,\infty)"), (r"x\ne1,2", r"x \ne 1 \text{ and } x \ne 2"),
    (r"\{x|x>2\}", r"\{y|y>2\}"), (r"\mathbb{R}", r"\text{All real numbers}"),
    ("f(x)=x", r"f(x) = x \text{ for all } x \in \mathbb{R}"),
    (r"x=\frac{\pi}{6}+2k\pi", r"\frac{\pi}{6}+2k\pi, k\in\mathbb{Z}"),
    # Numerals, times, moduli.
    ("1010_2", "(1010)_2"), ("1010_2", r"1010_\text{two}"), ("1010_2", "01010_2"),
    (r"4:30\text{ p.m.}", r"4\text{:}30\text{ p.m.}"), (r"6\text{ p.m.}", "6:00 PM"),
    (r"3^{\text{rd}}", r"3^{\text{rd}}\text{ place}"),
    ("7", r"7 \pmod{11}"), (r"n\equiv1\pmod 4", r"n \equiv 1 \pmod{4}"),
    # Values: the natural domain decides; under a floor, n is an integer.
    (r"\sqrt{ab}", r"\sqrt{a}\sqrt{b}"), (r"\lceil n/2\rceil", r"\lfloor (n+1)/2\rfloor"), ("-6", r"3\cdot -2"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{smallmatrix}1&2\\3&4\end{smallmatrix}"),
    ("12", r"\mathbf{\color{blue}{12}}"), ("12", r"\text{\textbf{12}}"), (r"\cos^{-1}x", r"\frac{\pi}{2}-\sin^{-1}x"),
    ("(a,b,c)=(1,1,1)", "a=b=c=1"), ("(x,y)=(3,1),(1,3)", r"(x,y)\in\{(1,3),(3,1)\}"), ("4", "4 am"),
    (r"f(x)=cx", r"f(x)=cx \quad (c\in\mathbb{R})"), (r"k\in\mathbb{R}", r"(-\infty,\infty)"),
    (r"5\text{ seconds}", r"5\,\mathrm{sec}"),
    (r"\sqrt{x^2y^2}", "|xy|"), (r"x\ne2", "x != 2"), ("f(x)=0", r"f(x)\equiv 0"),
    ("-2<2x+1<5", "-2<1+2x<5"), ("0<a<b<1", "1>b>a>0"),
]  # fmt: skip

DIFFERENT = [
    ("5", "5x"), ("5", "50"), ("5", "5!"), ("5!", "5"), ("2x", "2"), ("2", "2x"), (r"\sqrt{2}", "2"),
    (r"2\sqrt{3}", "23"), (r"3\pi", "3"), (r"\pi", "3.14159"), (r"\pi", "3.14159265358979"),
    (r"\frac13", "0.333"), (r"\frac13", "0.333333333333"), (r"\frac23", "0.6667"), ("(1,2)", "(2,1)"),
    ("(1,2]", "[1,2)"), ("(1,2)", "[1,2]"), ("(1,2)", r"\{1,2\}"), ("1,2", "1"), ("1", "1,2"), ("x>3", "x<3"),
    ("x>3", r"x\ge 3"), ("x=3", "y=3"), ("y=2x", "y=3x"), ("3x-y+13=0", "3x+4y+14=0"), ("1010_2", "1010_3"),
    ("10_2", "2"), ("2:3", "3:2"), (r"\text{Tuesday}", r"\text{Thursday}"), ("A", "B"), ("A", "a"),
    ("ab", "a+b"), (r"25\%", "2.5"), ("0.25", "25"), ("50", "0.5"), (r"30^\circ", r"\frac{\pi}{3}"),
    ("4:30", "5:30"), ("4:30 a.m.", "4:30 p.m."), (r"1\frac12", r"\frac12"),
    (r"\frac{1}{2^{98}}", r"\frac{1}{2^{99}}"), ("0", r"\frac{1}{2^{200}}"), ("0", "10^{-50}"),
    ("10^{-50}", "0"), ("e", "2.718281828"), ("x^2", "x^3"), ("x^2+1", "y^2+1"), (r"\sin x", r"\cos x"),
    (r"\sin^2 x", r"\sin x^2"), (r"1+\sqrt{2}", r"1\pm\sqrt{2}"), (r"\pm 3", "3"), ("3", r"\pm 3"),
    (r"\{1,2\}", r"\{1,2,3\}"), (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}2\\1\end{pmatrix}"),
    ("5", "x=6"), ("0", "x^2-1=0"), ("0", "(x+1)(x-2)=0"), ("0", "x(x+1)=0"), ("4", "x^2=4"),
    ("(0,1)", "[0,1]"), (r"[0,\infty)", r"(0,\infty)"), ("2^{100000}", "2^{100001}"), ("1", r"\frac{1}{0}"),
    (r"\infty", r"\frac{1}{0}"), (r"\infty", r"-\infty"), (r"5\text{ cm}", r"5\text{ m}"), ("i", "-i"),
    ("3+4i", "3-4i"), ("x", "-x"), ("|x|", "x"), (r"\sqrt{x^2}", "x"), ("12", "1,2"), ("12", "(1,2)"),
    ("123", "1,2,3"), ("16", "2^3"), ("5", "2^5"), ("25", "2^5"), ("12", r"\frac12"), ("5", "3+2i"),
    ("5", "2x+3"), ("a_1", "a_2"), ("x_1", "x"), (r"\frac{1}{30!}", r"\frac{1}{31!}"), ("f(x+y)", "f(x)+f(y)"),
    ("p=3,q=4", "4,3"), ("x=1,y=2", "x=2,y=1"), ("100,200", "200,300"), ("123,456", "123456789"),
    ("7", "1,2,3,4,5,6,7"), ("5", r"5 \text{ or } 6"), (r"\text{yes}", r"\text{no}"), (r"\log 2", r"\log 3"),
    (r"\log_2 3", r"\log_3 2"), (r"2 \text{ hours}", r"2 \text{ minutes}"), (r"\frac{0}{1}", r"\emptyset"),
    ("0", r"\emptyset"), (r"\{0\}", r"\emptyset"), ("1:2:3", "1:3:2"), ("1.5", "1,5"), ("15", "1.5"),
    ("3", "3i"), ("3", r"\sqrt[3]{3}"), ("e^x", "e^{-x}"), ("2", r"\text{two apples}"), (r"x \ne 2", "x = 2"),
    (r"x\ne 2", r"x \ne 3"), (r"(-\infty,2)", r"(-\infty,2]"), (r"\frac{x}{2}", r"\frac{2}{x}"), ("-5", "5"),
    (r"x<2 \text{ or } x>3", "x<2"), (r"1+\frac{1}{e}", r"1-\frac{1}{e}"), (r"\text{only }x=0", "1"),
    ("5", "five"), ("12", "12_5"), ("1/2", r"1\text{ or }2"), ("(2,3)", "5"),
    (r"\sqrt{2}+\sqrt{3}", r"\sqrt{5}"), ("60", r"1\text{ hour}"), ("4", r"4\sqrt{2}"),
    (r"\frac{355}{113}", r"\pi"), (r"\mathbb{R}\setminus\{0\}", r"(-\infty,0)"),
    ("12345", "12.345"), ("1234567", "1.234.567"), ("5", "5 million"), ("A", "AB"), ("A", r"\text{A and B}"),
    (r"\text{(A)}", r"\text{(B)}"), ("1500", "1.5e4"), ("5", "5 - 1"), ("(0,1)", "[0,1["),
    (r"\text{odd}", "even"), (r"\{1,2\}", r"\{1,1\}"), ("1,1,2", "1,2,2"), ("y=2x+1", "y=2x-1"),
    ("x>5", r"x \ge 5"), ("2^{2021}-1", "2^{2021}+1"), ("2^{2021}-1", "2^{2021}"),
    ("1000000007", "1000000008"), ("10^{50}", "10^{50}+1"), ("10^{50}+1", "10^{50}"),
    (r"3-\frac12", r"3\frac12"), (r"\log_2 8", r"\log_8 2"), ("x^2+y^2=1", "x^2+y^2=2"),
    ("x^2-y^2=1", "y^2-x^2=1"), ("-2<x<3", r"-2 \le x \le 3"), ("(1,2),(3,4)", "(1,4),(3,2)"),
    (r"\frac{1}{3}", "0.3"), (r"\frac{1}{3}", r"33.3\%"), (r"\frac23", "0.667"), ("1.41", r"\sqrt2"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix}1&3\\2&4\end{pmatrix}"),
    (r"\begin{pmatrix}1&2\end{pmatrix}", r"\begin{pmatrix}1\\2\end{pmatrix}"), ("2:3:4", "2:3:5"),
    (r"\text{Tuesday}", r"\text{Tuesday or Thursday}"), ("7", r"7 \text{ or } 8"),
    ("3", r"x=3 \text{ or } x=4"), (r"\frac{n(n+1)}{2}", r"\frac{n(n-1)}{2}"), ("x+1", "|x+1|"),
    (r"\sqrt{x^2}", "|x|+1"), ("a", "b"), ("2a", "2b"), (r"\text{Bob}", r"\text{Rob}"), ("I", "II"),
    ("1", "i"), ("0.1+0.2", "0.30000001"), (r"45^\circ", r"45^\circ 30'"), (r"100\%", "0.1"),
    ("5", r"\text{none}"), ("12", r"\text{twelve}"), (r"1+\sqrt2", r"1-\sqrt2"), ("(1,2)", "1+2i"),
    ("7", "3!"), ("e^{x}", "e^{x+10^{-30}}"), ("x", "x+10^{-12}"), ("1", "1+10^{-24}"),
    ("1", "0.999999999999999999999999999"),
    ("(1,2,3)", "(1,2,3]"), (r"2^{200}\sqrt{2}", r"(2^{200}+1)\sqrt{2}"), (r"\text{4:30 p.m.}", r"\frac{8}{3}"),
    # Words that are no unit, words that are letters, numbers side by side.
    ("5", r"5\text{ or more}"), ("5", r"5\text{ and a half}"), ("5", r"\text{at least }5"), ("cat", r"\text{act}"),
    ("N", r"\text{n}"), ("5", "2 3"), ("5", "1 1 1 1 1"), (r"10^\circ", r"10\text{ cm}"), (r"10\%", r"10^\circ"),
    # Digits too many for sixty places, lists too long to match, groups of three that are none.
    (r"\sqrt2", "1.41421356237309504880168872420969807856967187537694"),
    (r"\pi", "3.14159265358979323846264338327950288419716939937510"),
    (",".join(map(str, range(70))), ",".join([*map(str, range(69)), "99"])), ("123456", "123;456"), ("1200", "(1,200)"),
    # Conditions, systems, moduli.
    (r"(-\infty,-2)\cup(7,\infty)", r"x > -2 \text{ and } x < 7"), ("(-1,1)", "|x|>1"), ("[-1,1]", "|x|<1"),
    (r"x>0, x\in\mathbb{Z}", "x>0"), (r"\mathbb{R}", r"\mathbb{R}^+"), (r"x\ne1,2", r"x\ne 1"),
    ("x=1,y=2", r"\begin{cases}x=2\\y=1\end{cases}"), ("(1,1,1)", "x=y=1"),
    (r"\begin{cases}x,&x\ge0\\-x,&x<0\end{cases}", r"\begin{cases}x,&x<0\\-x,&x\ge0\end{cases}"),
    ("7", r"x\equiv7\pmod{10}"), (r"x\equiv7\pmod{10}", r"x\equiv7\pmod{12}"),
    ("6", r"\frac{12}{2}=7"), ("5", "x^{-1}=5"),
    (r"\sin 10^{-30}", "10^{-30}"), ("1", r"\cos(10^{-40})"), (r"\sqrt{x^2y}", r"x\sqrt{y}"),
    (r"n\in\mathbb{Z}", "5"), ("(a,b,c)=(1,1,2)", "a=b=c=1"),
    ("8", "3+4=8"), ("2<x<3", "3>x<2"), ("-2<2x+1<5", "(-2,5)"), ("1<2x<3", "1<5x<3"), ("0<a<b<1", "0<b<a<1"),
    ("a=b=c", "a=d=c"),
    ("x^{12}", "x^1"), (r"\lfloor n/2\rfloor", r"\lceil n/2\rceil"), ("f(x)=x", r"f(x)=-x \text{ for all } x"),
]  # fmt: skip

NO_KEYS = [
    "", "  ", "see the figure above", r"\text{see figure}", "See solution.", "Answers will vary", "Proof.",
    "the proof is omitted", "N/A", "?", "---", r"\frac{1}{", r"\undefinedmacro{5}{6}",
]  # fmt: skip

ONE_WAY = [  # (key, answer): right this way round only
    ("12_5", "12"),  # the question states the base; but an answer of base 5 to a decimal key is another number
]  # fmt: skip


@pytest.mark.parametrize(("gold", "answer"), SAME)
def test_one_answer_whichever_is_the_key(gold, answer):
    assert judge(gold, answer) == "right"
    assert judge(answer, gold) == "right"


@pytest.mark.parametrize(("gold", "answer"), DIFFERENT)
def test_another_answer(gold, answer):
    assert judge(gold, answer) != "right"
    if (answer, gold) not in ONE_WAY:
        assert judge(answer, gold) != "right"


@pytest.mark.parametrize("gold", NO_KEYS)
def test_a_key_that_is_none(gold):
    assert judge(gold, "5") == "bad_key"


@pytest.mark.parametrize("gold", ["see the figure above", ""])
def test_an_answer_like_a_bad_key_is_not_right(gold):
    assert judge(gold, gold) == "bad_key"


def test_an_unread_key_still_equals_itself():
    assert judge(r"\undefinedmacro{5}{6}", r"\undefinedmacro{5}{6}") == "right"
    assert judge(r"\undefinedmacro{5}{6}", "5") == "bad_key"


@pytest.mark.parametrize("gold", [r"\text{Tuesday}", "Evelyn", r"\text{no solution}", "15th Day", r"\text{below}"])
def test_word_keys_are_keys(gold):
    assert judge(gold, "5") == "wrong"


numbers = st.fractions(min_value=-1000, max_value=1000, max_denominator=60)


def spelt(number: Fraction, how: int) -> str:
    """One of the ways to write a number."""
    top, bottom = abs(number.numerator), number.denominator
    sign = "-" if number < 0 else ""
    if how == 0:
        return rf"{sign}\frac{{{top}}}{{{bottom}}}"
    if how == 1 or top < bottom or bottom == 1:
        return f"{sign}{top}/{bottom}"
    return rf"{sign}{top // bottom}\frac{{{top % bottom}}}{{{bottom}}}"


@given(numbers, numbers, st.integers(0, 2), st.integers(0, 2))
@settings(max_examples=150, deadline=None)
def test_the_quick_way_agrees_with_exact_numbers_and_with_the_slow_way(one, other, how, as_well):
    left, right = spelt(one, how), spelt(other, as_well)
    expected = one == other
    assert quick(left, right) == ("right" if expected else "wrong")
    assert numeric.equal(arithmetic.read(left), arithmetic.read(right)) == expected
    assert quick(left, spelt(one, as_well)) == "right"
    assert numeric.equal(arithmetic.read(left), arithmetic.read(spelt(one, as_well)))


polynomials = st.lists(st.integers(-9, 9), min_size=2, max_size=5)


def horner(coefficients: list[int]) -> str:
    text = str(coefficients[0])
    for coefficient in coefficients[1:]:
        text = f"({text})x+({coefficient})"
    return text


def expanded(coefficients: list[int]) -> str:
    degree = len(coefficients) - 1
    terms = (f"{c}x^{{{degree - power}}}" for power, c in enumerate(coefficients))
    return "+".join(terms).replace("+-", "-")


@given(polynomials, polynomials)
@settings(max_examples=60, deadline=None)
def test_polynomials_are_equal_iff_their_coefficients_are(one, other):
    padded = [[0] * (5 - len(p)) + p for p in (one, other)]
    assert (judge(horner(one), expanded(other)) == "right") == (padded[0] == padded[1])
    assert judge(horner(one), expanded(one)) == "right"
