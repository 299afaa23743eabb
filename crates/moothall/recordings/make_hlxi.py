#!/usr/bin/env python3
"""Writes the recording of Helix Instruments, Inc. (HLXI), a company that does not exist.

The files have the shapes of the SEC's answers, so that the program reads them the way it reads real ones. The numbers are a small
quarterly model: balance sheets balance, cash is what the cash flows leave, quarters add up to years. On top of it come one share
split (2 for 1, June 2023) and one restatement (inventory of the end of 2023, corrected in the annual report for 2024).

Run it again after a change; it writes the same bytes every time:  python3 crates/moothall/recordings/make_hlxi.py
"""

import datetime
import json
import pathlib

CIK = 9990001  # the SEC does not use it
NAME = "Helix Instruments, Inc. (fictional)"
HERE = pathlib.Path(__file__).parent / "hlxi"
K = 1000  # the model counts in thousands of dollars

# --- the model ------------------------------------------------------------------------------------------------------------

# year: revenue in millions, then gross margin, R&D, selling and administration as parts of it
YEARS = {
    2018: (742.6, 0.586, 0.092, 0.268),
    2019: (801.3, 0.587, 0.093, 0.267),
    2020: (862.4, 0.584, 0.095, 0.266),
    2021: (968.1, 0.581, 0.097, 0.268),
    2022: (1071.5, 0.570, 0.100, 0.271),
    2023: (1142.8, 0.556, 0.103, 0.273),
    2024: (1188.6, 0.541, 0.106, 0.275),
    2025: (1214.9, 0.523, 0.109, 0.276),
    2026: (1221.7, 0.511, 0.111, 0.277),  # only its first half is told
}
# the parts of a year's revenue that its first three quarters bring; the fourth brings the rest
SEASONS = {2018: (0.236, 0.243, 0.247), 2019: (0.233, 0.246, 0.248), 2020: (0.231, 0.222, 0.256), 2021: (0.238, 0.247, 0.243),
           2022: (0.241, 0.224, 0.252), 2023: (0.236, 0.246, 0.245), 2024: (0.233, 0.244, 0.249), 2025: (0.239, 0.249, 0.247),
           2026: (0.232, 0.246, 0.246)}
LAST = (2026, 2)
# days of sales, days of cost of sales, at the end of each year
RECEIVABLE_DAYS = {2017: 60, 2018: 60, 2019: 61, 2020: 60, 2021: 61, 2022: 62, 2023: 64, 2024: 66, 2025: 69, 2026: 71}
INVENTORY_DAYS = {2017: 98, 2018: 99, 2019: 100, 2020: 101, 2021: 104, 2022: 120, 2023: 134, 2024: 152, 2025: 170, 2026: 184}
DEFERRED_PART = {2017: 0.072, 2018: 0.076, 2019: 0.081, 2020: 0.087, 2021: 0.094, 2022: 0.103, 2023: 0.115, 2024: 0.129, 2025: 0.146, 2026: 0.158}
CAPEX_PART = {2018: 0.041, 2019: 0.042, 2020: 0.038, 2021: 0.045, 2022: 0.052, 2023: 0.056, 2024: 0.051, 2025: 0.047, 2026: 0.049}
BUYBACKS = {2018: 60.0, 2019: 70.0, 2020: 40.0, 2021: 110.0, 2022: 130.0, 2023: 135.0, 2024: 120.0, 2025: 140.0, 2026: 90.0}
DIVIDEND_PER_SHARE = {2021: 0.40, 2022: 0.48, 2023: 0.56, 2024: 0.64, 2025: 0.72, 2026: 0.76}  # new shares
TAX = {2018: 0.226, 2019: 0.221, 2020: 0.217, 2021: 0.214, 2022: 0.208, 2023: 0.205, 2024: 0.199, 2025: 0.211, 2026: 0.213}
PAYABLE_DAYS = {2017: 44, 2018: 44, 2019: 43, 2020: 45, 2021: 46, 2022: 49, 2023: 46, 2024: 44, 2025: 41, 2026: 40}
SPLIT = 2
SPLIT_DAY = datetime.date(2023, 6, 15)
# What the annual report for 2023 had too much of, before it was corrected.
ERROR_COST = 6200
ERROR_TAX = 1271
CORRECTED = datetime.date(2025, 2, 27)


def quarters():
    return [(y, q) for y in YEARS for q in (1, 2, 3, 4) if (y, q) <= LAST]


def between(table, y, q):
    """The value at the end of a quarter, on the line from one year's end to the next."""
    return table[y - 1] + (table[y] - table[y - 1]) * q / 4


def end_of(y, q):
    return datetime.date(y, (3, 6, 9, 12)[q - 1], (31, 30, 30, 31)[q - 1])


def start_of(y, q):
    return datetime.date(y, (1, 4, 7, 10)[q - 1], 1)


def model():
    """Quarter by quarter, in thousands; `shares` in thousands of new shares."""
    cash, receivables, inventory, other_current = 121_400, 118_000, 82_000, 24_600
    plant, goodwill, other_assets = 168_300, 142_500, 61_200
    payables, deferred, accrued, debt_current, debt, other_debts = 41_300, 52_900, 78_400, 0, 150_000, 44_100
    equity = cash + receivables + inventory + other_current + plant + goodwill + other_assets
    equity -= payables + deferred + accrued + debt_current + debt + other_debts
    shares = 73_800
    told = {}
    for y, q in quarters():
        revenue_year, margin, research_part, selling_part = YEARS[y]
        before = YEARS.get(y - 1, YEARS[y])
        wobble = (0.003, 0.001, -0.001, -0.002)[q - 1]
        margin_now = margin + (before[1] - margin) * (0.3, 0.1, -0.1, -0.25)[q - 1] + wobble
        if q < 4:
            revenue = round(revenue_year * K * SEASONS[y][q - 1])
        else:
            revenue = round(revenue_year * K) - sum(told[y, past]["revenue"] for past in (1, 2, 3))
        cost = round(revenue * (1 - margin_now))
        research = round(revenue * research_part)
        # Much of selling is salaries, which do not follow the quarter's sales.
        selling = round((revenue * 0.5 + revenue_year * K / 8) * selling_part)
        operating = revenue - cost - research - selling
        interest = round((debt + debt_current) * 0.041 / 4)
        pretax = operating - interest
        tax = round(pretax * TAX[y])
        net = pretax - tax
        depreciation = round(revenue * 0.043)
        stock_pay = round(revenue * (0.018 + 0.0008 * (y - 2018)))

        # Receivables follow the quarter, stocks are planned for the year.
        year_rate, cost_rate = revenue * 4, round(revenue_year * K * (1 - margin_now))
        now_receivables = round(year_rate * between(RECEIVABLE_DAYS, y, q) / 365)
        now_inventory = round(cost_rate * between(INVENTORY_DAYS, y, q) / 365)
        now_deferred = round(revenue_year * K * between(DEFERRED_PART, y, q))
        now_payables = round(cost_rate * between(PAYABLE_DAYS, y, q) / 365)
        now_accrued = round(year_rate * 0.092)
        now_other_current = round(year_rate * 0.029)
        operations = net + depreciation + stock_pay
        operations -= now_receivables - receivables + now_inventory - inventory + now_other_current - other_current
        operations += now_deferred - deferred + now_payables - payables + now_accrued - accrued
        capex = round(revenue * CAPEX_PART[y])
        acquisition = 184_600 if (y, q) == (2022, 2) else 0
        buyback = round(BUYBACKS[y] * K / 4)
        dividend = round(shares * DIVIDEND_PER_SHARE.get(y, 0) / 4)
        borrowed = 120_000 if (y, q) == (2022, 2) else 0
        repaid = debt_current if q == 2 else 0

        cash += operations - capex - acquisition - buyback - dividend + borrowed - repaid
        receivables, inventory, other_current = now_receivables, now_inventory, now_other_current
        deferred, payables, accrued = now_deferred, now_payables, now_accrued
        # Of what was bought in 2022, 131.3 million is goodwill; the rest are other assets, which wear off with the plant.
        goodwill += 131_300 if acquisition else 0
        other_assets += acquisition - (131_300 if acquisition else 0)
        plant += capex - depreciation
        debt += borrowed
        debt_current -= repaid
        if q == 4:
            due = 30_000 if y in (2023, 2024, 2025) else 0
            debt, debt_current = debt - due, debt_current + due
        equity += net + stock_pay - buyback - dividend
        price = 62 + 2.1 * (y - 2018)  # dollars for a new share, only to see how many are bought back
        shares += round(stock_pay / price * 0.9) - round(buyback / price)
        assets_current = cash + receivables + inventory + other_current
        assets = assets_current + plant + goodwill + other_assets
        liabilities_current = payables + deferred + accrued + debt_current
        liabilities = liabilities_current + debt + other_debts
        assert assets == liabilities + equity, (y, q, assets - liabilities - equity)
        told[y, q] = {
            "revenue": revenue, "cost": cost, "research": research, "selling": selling, "operating": operating,
            "interest": interest, "pretax": pretax, "tax": tax, "net": net, "depreciation": depreciation,
            "stock_pay": stock_pay, "operations": operations, "capex": capex, "buyback": buyback, "dividend": dividend,
            "acquisition": acquisition, "shares": shares,
            "cash": cash, "receivables": receivables, "inventory": inventory, "assets_current": assets_current,
            "plant": plant, "goodwill": goodwill, "assets": assets, "payables": payables, "deferred": deferred,
            "liabilities_current": liabilities_current, "debt_current": debt_current, "debt": debt,
            "liabilities": liabilities, "equity": equity, "promised": round(deferred * 1.9),
        }
    return told


TOLD = model()

# --- what a filing says ---------------------------------------------------------------------------------------------------

FLOWS = {
    "RevenueFromContractWithCustomerExcludingAssessedTax": "revenue",
    "CostOfRevenue": "cost",
    "GrossProfit": "gross",
    "ResearchAndDevelopmentExpense": "research",
    "SellingGeneralAndAdministrativeExpense": "selling",
    "OperatingIncomeLoss": "operating",
    "InterestExpense": "interest",
    "IncomeLossFromContinuingOperationsBeforeIncomeTaxesExtraordinaryItemsNoncontrollingInterest": "pretax",
    "IncomeTaxExpenseBenefit": "tax",
    "NetIncomeLoss": "net",
}
CASH_FLOWS = {
    "DepreciationDepletionAndAmortization": "depreciation",
    "ShareBasedCompensation": "stock_pay",
    "NetCashProvidedByUsedInOperatingActivities": "operations",
    "PaymentsToAcquirePropertyPlantAndEquipment": "capex",
    "PaymentsForRepurchaseOfCommonStock": "buyback",
    "PaymentsOfDividends": "dividend",
    "PaymentsToAcquireBusinessesNetOfCashAcquired": "acquisition",
}
STOCKS = {
    "CashAndCashEquivalentsAtCarryingValue": "cash",
    "AccountsReceivableNetCurrent": "receivables",
    "InventoryNet": "inventory",
    "AssetsCurrent": "assets_current",
    "PropertyPlantAndEquipmentNet": "plant",
    "Goodwill": "goodwill",
    "Assets": "assets",
    "AccountsPayableCurrent": "payables",
    "ContractWithCustomerLiabilityCurrent": "deferred",
    "LiabilitiesCurrent": "liabilities_current",
    "LongTermDebtCurrent": "debt_current",
    "LongTermDebtNoncurrent": "debt",
    "Liabilities": "liabilities",
    "StockholdersEquity": "equity",
    "LiabilitiesAndStockholdersEquity": "assets",
    "RevenueRemainingPerformanceObligation": "promised",
}
LABELS = {
    "EarningsPerShareDiluted": "Earnings Per Share, Diluted",
    "EarningsPerShareBasic": "Earnings Per Share, Basic",
}


def flow(name, y, first, last, filed):
    """A sum over quarters as a filing of that day says it."""
    total = sum(TOLD[y, q]["revenue"] - TOLD[y, q]["cost"] if name == "gross" else TOLD[y, q][name] for q in range(first, last + 1))
    if y == 2023 and last == 4 and filed < CORRECTED:
        total += {"cost": -ERROR_COST, "gross": ERROR_COST, "operating": ERROR_COST, "pretax": ERROR_COST, "tax": ERROR_TAX,
                  "net": ERROR_COST - ERROR_TAX}.get(name, 0)
    return total


def stock(name, y, q, filed):
    value = TOLD[y, q][name]
    if (2023, 4) <= (y, q) <= (2024, 3) and filed < CORRECTED:
        value += {"inventory": ERROR_COST, "assets_current": ERROR_COST, "assets": ERROR_COST, "liabilities_current": ERROR_TAX,
                  "liabilities": ERROR_TAX, "equity": ERROR_COST - ERROR_TAX}.get(name, 0)
    return value


def per_share(y, first, last, filed):
    """Weighted shares, and earnings for each; old shares before the split."""
    shares = sum(TOLD[y, q]["shares"] for q in range(first, last + 1)) // (last - first + 1)
    if filed < SPLIT_DAY:
        shares //= SPLIT
    net = flow("net", y, first, last, filed)
    diluted = round(shares * 1.012)
    return shares, diluted, round(net / shares, 2), round(net / diluted, 2)


class Facts:
    def __init__(self):
        self.concepts = {}

    def add(self, taxonomy, concept, unit, start, end, value, filing):
        row = {} if start is None else {"start": start.isoformat()}
        row |= {"end": end.isoformat(), "val": value, "accn": filing["accn"], "fy": filing["fy"], "fp": filing["fp"],
                "form": filing["form"], "filed": filing["filed"].isoformat()}
        self.concepts.setdefault((taxonomy, concept, unit), []).append(row)

    def flows(self, y, first, last, filing, table):
        filed = filing["filed"]
        start, end = start_of(y, first), end_of(y, last)
        for concept, name in table.items():
            value = flow(name, y, first, last, filed)
            if name in ("acquisition", "dividend") and value == 0:
                continue  # nothing is tagged where there was nothing
            self.add("us-gaap", concept, "USD", start, end, value * K, filing)
        if table is FLOWS:
            shares, diluted, basic_eps, diluted_eps = per_share(y, first, last, filed)
            for concept, unit, value in (
                ("EarningsPerShareBasic", "USD/shares", basic_eps),
                ("EarningsPerShareDiluted", "USD/shares", diluted_eps),
                ("WeightedAverageNumberOfSharesOutstandingBasic", "shares", shares * K),
                ("WeightedAverageNumberOfDilutedSharesOutstanding", "shares", diluted * K),
            ):
                self.add("us-gaap", concept, unit, start, end, value, filing)

    def stocks(self, y, q, filing):
        for concept, name in STOCKS.items():
            self.add("us-gaap", concept, "USD", None, end_of(y, q), stock(name, y, q, filing["filed"]) * K, filing)

    def cover(self, y, q, filing):
        shares = TOLD[y, q]["shares"] * K // (SPLIT if filing["filed"] < SPLIT_DAY else 1)
        day = filing["filed"] - datetime.timedelta(days=6)
        self.add("dei", "EntityCommonStockSharesOutstanding", "shares", None, day, shares, filing)

    def document(self):
        words = lambda name: LABELS.get(name, "".join(" " + c if c.isupper() else c for c in name).strip())
        lines = []
        for taxonomy in ("dei", "us-gaap"):
            inner = []
            for (of, concept, unit), rows in sorted(self.concepts.items()):
                if of == taxonomy:
                    rows.sort(key=lambda row: (row["end"], row.get("start", ""), row["filed"]))
                    body = {"label": words(concept), "description": None, "units": {unit: rows}}
                    inner.append(f"{json.dumps(concept)}:{json.dumps(body, separators=(',', ':'))}")
            lines.append(f"{json.dumps(taxonomy)}:{{\n" + ",\n".join(inner) + "}")
        return f'{{"cik":{CIK},"entityName":{json.dumps(NAME)},"facts":{{\n' + ",\n".join(lines) + "}}\n"


# --- the filings ----------------------------------------------------------------------------------------------------------

day = datetime.date.fromisoformat
ANNUAL = {y: day(d) for y, d in {2020: "2021-02-25", 2021: "2022-02-24", 2022: "2023-02-23", 2023: "2024-02-22", 2024: "2025-02-27",
                                 2025: "2026-02-26"}.items()}
QUARTERLY = {(y, q): day(d) for y, q, d in (
    (2024, 1, "2024-05-02"), (2024, 2, "2024-08-01"), (2024, 3, "2024-10-31"), (2025, 1, "2025-05-01"), (2025, 2, "2025-07-31"),
    (2025, 3, "2025-10-30"), (2026, 1, "2026-04-30"), (2026, 2, "2026-07-30"))}
# filed, happened, items
EVENTS = [
    ("2022-05-17", "2022-05-12", "1.01,2.03,9.01"),  # buys a maker of laboratory software, with a loan
    ("2022-06-09", "2022-06-08", "5.07"),
    ("2023-02-22", "2023-02-22", "2.02,9.01"),
    ("2023-05-18", "2023-05-17", "3.03,5.03,8.01,9.01"),  # the split
    ("2023-06-08", "2023-06-07", "5.07"),
    ("2024-02-21", "2024-02-21", "2.02,9.01"),
    ("2024-05-01", "2024-05-01", "2.02,9.01"),
    ("2024-06-13", "2024-06-12", "5.07"),
    ("2024-07-31", "2024-07-31", "2.02,9.01"),
    ("2024-09-12", "2024-09-10", "5.02,9.01"),  # a new head of operations
    ("2024-10-30", "2024-10-30", "2.02,9.01"),
    ("2025-02-10", "2025-02-06", "4.02,9.01"),  # the inventory of the end of 2023
    ("2025-02-26", "2025-02-26", "2.02,9.01"),
    ("2025-04-30", "2025-04-30", "2.02,9.01"),
    ("2025-06-12", "2025-06-11", "5.07"),
    ("2025-07-30", "2025-07-30", "2.02,9.01"),
    ("2025-10-09", "2025-10-08", "7.01,9.01"),  # answers a competitor's lower prices
    ("2025-10-29", "2025-10-29", "2.02,9.01"),
    ("2025-12-11", "2025-12-09", "5.02,9.01"),  # a new chief financial officer
    ("2026-02-25", "2026-02-25", "2.02,9.01"),
    ("2026-03-19", "2026-03-17", "2.05,9.01"),  # closes a plant
    ("2026-04-29", "2026-04-29", "2.02,9.01"),
    ("2026-05-21", "2026-05-19", "1.01,9.01"),  # a distributor in China
    ("2026-06-11", "2026-06-10", "5.07"),
    ("2026-07-29", "2026-07-29", "2.02,9.01"),
    ("2026-08-13", "2026-08-11", "8.01,9.01"),  # the new flagship comes later
]


def filings():
    rows = [{"form": "10-K", "filed": filed, "report": end_of(y, 4), "items": "", "doc": f"hlxi-{y}1231.htm", "fy": y, "fp": "FY"}
            for y, filed in ANNUAL.items()]
    rows += [{"form": "10-Q", "filed": filed, "report": end_of(y, q), "items": "", "doc": f"hlxi-{end_of(y, q):%Y%m%d}.htm", "fy": y,
              "fp": f"Q{q}"} for (y, q), filed in QUARTERLY.items()]
    rows += [{"form": "8-K", "filed": day(filed), "report": day(happened), "items": items, "doc": f"hlxi-{happened.replace('-', '')}.htm",
              "fy": None, "fp": None} for filed, happened, items in EVENTS]
    rows += [{"form": "DEF 14A", "filed": day(f"{y}-04-{d}"), "report": day(f"{y}-06-{m}"), "items": "", "doc": f"hlxi-proxy-{y}.htm",
              "fy": None, "fp": None} for y, d, m in ((2023, 25, "07"), (2024, 25, 12), (2025, 24, 11), (2026, 23, 10))]
    rows.sort(key=lambda row: (row["filed"], row["form"]))
    numbers = {}
    for row in rows:
        year = row["filed"].year
        numbers[year] = numbers.get(year, 2) + 3
        row["accn"] = f"{CIK:010}-{year % 100:02}-{numbers[year]:06}"
    return rows


def submissions(rows):
    newest = rows[::-1]
    recent = {
        "accessionNumber": [row["accn"] for row in newest],
        "filingDate": [row["filed"].isoformat() for row in newest],
        "reportDate": [row["report"].isoformat() for row in newest],
        "acceptanceDateTime": [f"{row['filed'].isoformat()}T20:{5 + index % 50:02}:11.000Z" for index, row in enumerate(newest)],
        "act": ["34" for _ in newest],
        "form": [row["form"] for row in newest],
        "fileNumber": ["001-99901" for _ in newest],
        "filmNumber": ["" for _ in newest],
        "items": [row["items"] for row in newest],
        "core_type": ["XBRL" if row["fp"] else row["form"] for row in newest],
        "size": [0 for _ in newest],
        "isXBRL": [1 if row["fp"] else 0 for row in newest],
        "isInlineXBRL": [1 if row["fp"] else 0 for row in newest],
        "primaryDocument": [row["doc"] for row in newest],
        "primaryDocDescription": [row["form"] for row in newest],
    }
    document = {
        "cik": f"{CIK:010}", "entityType": "operating", "sic": "3826", "sicDescription": "Laboratory Analytical Instruments",
        "name": NAME, "tickers": ["HLXI"], "exchanges": ["none: fictional"], "ein": "000000000", "description": "A company that does not exist.",
        "category": "Large accelerated filer", "fiscalYearEnd": "1231", "stateOfIncorporation": "DE",
        "formerNames": [{"name": "HELIX CHROMATOGRAPHY INC", "from": "2004-03-02T05:00:00.000Z", "to": "2011-05-20T04:00:00.000Z"}],
        "filings": {"recent": recent, "files": []},
    }
    text = json.dumps(document, indent=1)
    # One array a line, so that a change can be read.
    for name, values in recent.items():
        text = text.replace(f'"{name}": ' + json.dumps(values, indent=1).replace("\n", "\n   "), f'"{name}": ' + json.dumps(values))
    return text + "\n"


def companyfacts(rows):
    facts = Facts()
    for filing in rows:
        if filing["form"] == "10-K":
            y = filing["fy"]
            for back in (0, 1, 2):
                facts.flows(y - back, 1, 4, filing, FLOWS)
                facts.flows(y - back, 1, 4, filing, CASH_FLOWS)
            facts.stocks(y, 4, filing)
            facts.stocks(y - 1, 4, filing)
            facts.cover(y, 4, filing)
        elif filing["form"] == "10-Q":
            y, q = filing["fy"], int(filing["fp"][1])
            for year in (y, y - 1):
                facts.flows(year, q, q, filing, FLOWS)
                if q > 1:
                    facts.flows(year, 1, q, filing, FLOWS)
                facts.flows(year, 1, q, filing, CASH_FLOWS)
            facts.stocks(y, q, filing)
            facts.stocks(y - 1, 4, filing)
            facts.cover(y, q, filing)
    return facts.document()


# --- the annual report in words -------------------------------------------------------------------------------------------

LINES = {2023: (0.486, 0.294), 2024: (0.444, 0.316), 2025: (0.396, 0.340)}  # instruments, consumables; the rest is service


def millions(thousands, decimals=1):
    return f"${thousands / K:,.{decimals}f} million"


def percent(part, decimals=1):
    return f"{part * 100:.{decimals}f}%"


def figures():
    filed = ANNUAL[2025]
    year = lambda name, y: flow(name, y, 1, 4, filed)
    f = {}
    for y in (2023, 2024, 2025):
        revenue = year("revenue", y)
        instruments, consumables = (round(revenue * part) for part in LINES[y])
        f |= {f"revenue{y}": millions(revenue), f"instruments{y}": millions(instruments), f"consumables{y}": millions(consumables),
              f"services{y}": millions(revenue - instruments - consumables), f"gross{y}": percent(year("gross", y) / revenue),
              f"operating{y}": millions(year("operating", y)), f"margin{y}": percent(year("operating", y) / revenue),
              f"research{y}": millions(year("research", y)), f"inventory{y}": millions(stock("inventory", y, 4, filed)),
              f"cfo{y}": millions(year("operations", y)), f"capex{y}": millions(year("capex", y)), f"net{y}": millions(year("net", y)),
              f"buyback{y}": millions(year("buyback", y)), f"deferred{y}": millions(stock("deferred", y, 4, filed)),
              f"line{y}": (instruments, consumables, revenue - instruments - consumables, revenue)}
    grown = lambda now, before: percent(now / before - 1)
    now, before = f.pop("line2025"), f.pop("line2024")
    f.pop("line2023")
    f |= {"consumables_growth": grown(now[1], before[1]), "services_growth": grown(now[2], before[2]),
          "instruments_fall": percent(1 - now[0] / before[0]), "growth": grown(now[3], before[3]),
          "consumables_part": percent(now[1] / now[3], 0), "services_part": percent(now[2] / now[3], 0),
          "instruments_part": percent(now[0] / now[3], 0), "cash": millions(stock("cash", 2025, 4, filed)),
          "debt": millions(stock("debt", 2025, 4, filed) + stock("debt_current", 2025, 4, filed)),
          "promised": millions(stock("promised", 2025, 4, filed)),
          "inventory_days": f"{stock('inventory', 2025, 4, filed) * 365 / year('cost', 2025):.0f}"}
    return f


def annual_report(filing):
    text = (pathlib.Path(__file__).parent / "hlxi_10k.txt").read_text().format(**figures())
    body = []
    for block in text.strip().split("\n\n"):
        block = " ".join(block.split())
        escaped = block.replace("&", "&amp;").replace("<", "&lt;").replace("'", "&#8217;")
        if block.startswith("# "):
            body.append(f'<div style="margin-top:18pt"><span style="font-weight:700">{escaped[2:]}</span></div>')
        elif block.startswith("## "):
            body.append(f'<div><span style="font-style:italic">{escaped[3:]}</span></div>')
        elif block.startswith("| "):
            cells = "".join(f"<td>{cell.strip()}</td>" for cell in escaped.strip("| ").split("|"))
            body.append(f"<table><tr>{cells}</tr></table>")
        else:
            body.append(f"<div><span>{escaped}</span></div>")
    head = f"<title>{filing['doc'][:-4]}</title>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<html><head>{head}</head><body>\n' + "\n".join(body) + "\n</body></html>\n"


def write(path, text):
    path = HERE / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main():
    rows = filings()
    listing = {"0": {"cik_str": CIK, "ticker": "HLXI", "title": NAME}}
    write("reference/company_tickers.json", json.dumps(listing) + "\n")
    write(f"submissions/CIK{CIK:010}.json", submissions(rows))
    write(f"companyfacts/CIK{CIK:010}.json", companyfacts(rows))
    report = next(row for row in rows if row["form"] == "10-K" and row["fy"] == 2025)
    write(f"archives/{CIK}/{report['accn'].replace('-', '')}/{report['doc']}", annual_report(report))


if __name__ == "__main__":
    main()
